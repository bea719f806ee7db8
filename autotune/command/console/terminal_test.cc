#include "autotune/command/console/terminal.h"

#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "coconet/base/table.h"
#include "gtest/gtest.h"

namespace coconet {
namespace {

/// What a line of progress writes to a file.
std::string Written(size_t columns, const std::string& text) {
  std::FILE* file = std::tmpfile();
  {
    ProgressLine line(file, columns);
    line.Show(text);
  }
  std::rewind(file);
  char buffer[1000] = {};
  const size_t size = std::fread(buffer, 1, sizeof buffer, file);
  std::fclose(file);
  return {buffer, size};
}

TEST(ProgressLine, CutsNothingInFiles) {
  const std::string text(500, 'x');
  EXPECT_EQ(Written(TableColumn::kWhole, text), text + "\n");
}

TEST(ProgressLine, KeepsWithinATerminalAndTakesTheLineBack) {
  EXPECT_EQ(Written(10, "0123456789"), "\r\x1b[K012345...\r\x1b[K");
  EXPECT_EQ(Written(11, "0123456789"), "\r\x1b[K0123456789\r\x1b[K");
}

TEST(ColumnsOf, ReadsTheWidthOfATerminalOnly) {
  std::FILE* file = std::tmpfile();
  EXPECT_EQ(ColumnsOf(file), TableColumn::kWhole);
  std::fclose(file);
  int controller = -1, terminal = -1;
  const struct winsize size = {.ws_row = 24, .ws_col = 71, .ws_xpixel = 0, .ws_ypixel = 0};
  if (openpty(&controller, &terminal, nullptr, nullptr, &size) != 0)
    GTEST_SKIP() << "no pseudoterminal can be opened here";
  std::FILE* screen = fdopen(terminal, "w");
  EXPECT_EQ(ColumnsOf(screen), 71u);
  const struct winsize unknown = {};
  ioctl(controller, TIOCSWINSZ, &unknown);
  EXPECT_EQ(ColumnsOf(screen), TableColumn::kWhole) << "it does not tell its width";
  std::fclose(screen);
  close(controller);
}

}  // namespace
}  // namespace coconet
