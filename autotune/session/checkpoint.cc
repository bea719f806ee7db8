#include "autotune/session/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

constexpr int64_t kAlign = 4096;
constexpr int64_t kPiece = int64_t{1} << 22;  // bytes read at once
constexpr int64_t kLongestHeader = int64_t{1} << 24;
constexpr absl::string_view kFirstLine = "coconet checkpoint 1\n";
constexpr absl::string_view kLastLine = "end\n";

int64_t AlignUp(int64_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

std::string Header(const std::vector<CheckpointState>& states) {
  std::string text(kFirstLine);
  for (const CheckpointState& s : states) {
    absl::StrAppend(&text, "state ", s.name, " : ", Name(s.type.dtype), Text(s.type.shape),
                    "\ndigest ", absl::Hex(s.digest, absl::kZeroPad16), "\n");
  }
  return absl::StrCat(text, kLastLine);
}

absl::Status FileError(absl::string_view operation, const std::string& path) {
  const std::string message = absl::StrCat(operation, " ", path, ": ", std::strerror(errno));
  if (errno == ENOENT) return absl::NotFoundError(message);
  if (errno == ENOSPC || errno == EDQUOT) return absl::ResourceExhaustedError(message);
  return absl::FailedPreconditionError(message);
}

absl::Status WriteAll(const Descriptor& file, int64_t offset, const char* bytes, int64_t count,
                      const std::string& path) {
  while (count > 0) {
    const ssize_t written = pwrite(file.get(), bytes, count, offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return FileError("write", path);
    bytes += written;
    offset += written;
    count -= written;
  }
  return absl::OkStatus();
}

absl::Status ReadAll(const Descriptor& file, int64_t offset, char* bytes, int64_t count,
                     const std::string& path) {
  while (count > 0) {
    const ssize_t got = pread(file.get(), bytes, count, offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return FileError("read", path);
    if (got == 0) return absl::DataLossError(absl::StrCat("load ", path, ": the file is cut off"));
    bytes += got;
    offset += got;
    count -= got;
  }
  return absl::OkStatus();
}

absl::StatusOr<Shape> ParseShape(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, "[") || !absl::ConsumeSuffix(&text, "]"))
    return absl::DataLossError("no shape");
  Shape shape;
  for (absl::string_view extent : absl::StrSplit(text, ", ", absl::SkipEmpty())) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(extent, &size)) return absl::DataLossError("no extent");
    shape.push_back(size);
  }
  RETURN_IF_ERROR(CheckExtents(shape));
  return shape;
}

/// "state m : f32[1000]" and "digest 0123456789abcdef".
absl::StatusOr<CheckpointState> ParseState(absl::string_view state, absl::string_view digest) {
  CheckpointState s;
  const std::vector<absl::string_view> words = absl::StrSplit(state, absl::MaxSplits(' ', 3));
  if (words.size() != 4 || words[0] != "state" || words[2] != ":")
    return absl::DataLossError("no state");
  s.name = std::string(words[1]);
  const size_t bracket = words[3].find('[');
  const std::optional<DType> dtype = ParseDType(words[3].substr(0, bracket));
  if (bracket == absl::string_view::npos || !dtype.has_value())
    return absl::DataLossError("no type");
  s.type.dtype = *dtype;
  ASSIGN_OR_RETURN(s.type.shape, ParseShape(words[3].substr(bracket)));
  if (!absl::ConsumePrefix(&digest, "digest ") || !absl::SimpleHexAtoi(digest, &s.digest))
    return absl::DataLossError("no digest");
  return s;
}

absl::StatusOr<std::vector<CheckpointState>> ParseHeader(absl::string_view text) {
  if (!absl::ConsumePrefix(&text, kFirstLine))
    return absl::DataLossError("it is no checkpoint of this version");
  const std::vector<absl::string_view> lines = absl::StrSplit(text, '\n');
  std::vector<CheckpointState> states;
  for (size_t i = 0; i + 1 < lines.size(); i += 2) {
    if (lines[i] == "end") return LayOutCheckpoint(std::move(states));
    if (i + 2 >= lines.size()) break;
    ASSIGN_OR_RETURN(CheckpointState state, ParseState(lines[i], lines[i + 1]));
    states.push_back(std::move(state));
  }
  return absl::DataLossError("its header is cut off");
}

template <class T>
uint64_t Sum(int64_t begin, int64_t count, const void* elements) {
  const char* at = static_cast<const char*>(elements);
  uint64_t sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    T bits;
    std::memcpy(&bits, at + i * sizeof(T), sizeof(T));
    const uint64_t word =
        (static_cast<uint64_t>(begin + i) + 1) * 0x9E3779B97F4A7C15 ^ static_cast<uint64_t>(bits);
    sum += (word ^ (word >> 29)) * 0xBF58476D1CE4E5B9;
  }
  return sum;
}

}  // namespace

std::vector<CheckpointState> LayOutCheckpoint(std::vector<CheckpointState> states) {
  int64_t offset = AlignUp(static_cast<int64_t>(Header(states).size()));
  for (CheckpointState& s : states) {
    s.offset = offset;
    offset = AlignUp(offset + s.bytes());
  }
  return states;
}

uint64_t DigestOf(DType dtype, int64_t begin, int64_t count, const void* elements) {
  switch (SizeOf(dtype)) {
    case 1:
      return Sum<uint8_t>(begin, count, elements);
    case 2:
      return Sum<uint16_t>(begin, count, elements);
    case 4:
      return Sum<uint32_t>(begin, count, elements);
    case 8:
      return Sum<uint64_t>(begin, count, elements);
    default:
      break;
  }
  CC_CHECK(false);
  return 0;
}

absl::StatusOr<CheckpointWriter> CheckpointWriter::Create(const std::string& path,
                                                          std::vector<CheckpointState> states) {
  const std::string temporary = absl::StrCat(path, ".tmp-", getpid());
  Descriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return FileError("save", temporary);
  return CheckpointWriter(path, temporary, std::move(file), LayOutCheckpoint(std::move(states)));
}

CheckpointWriter::~CheckpointWriter() {
  if (file_) unlink(temporary_.c_str());
}

absl::Status CheckpointWriter::Write(size_t state, int64_t begin, int64_t count,
                                     const void* elements) {
  CheckpointState& s = states_[state];
  const auto size = static_cast<int64_t>(SizeOf(s.type.dtype));
  s.digest += DigestOf(s.type.dtype, begin, count, elements);
  return WriteAll(file_, s.offset + begin * size, static_cast<const char*>(elements), count * size,
                  temporary_);
}

absl::Status CheckpointWriter::Commit() {
  const std::string header = Header(states_);
  RETURN_IF_ERROR(
      WriteAll(file_, 0, header.data(), static_cast<int64_t>(header.size()), temporary_));
  // Extends the file to its size: the last state may be empty, or end in a hole.
  const int64_t end = states_.empty() ? static_cast<int64_t>(header.size())
                                      : states_.back().offset + states_.back().bytes();
  if (ftruncate(file_.get(), end) != 0 || fsync(file_.get()) != 0)
    return FileError("save", temporary_);
  if (rename(temporary_.c_str(), path_.c_str()) != 0) return FileError("save", path_);
  file_.Close();
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  const Descriptor dir(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (dir) fsync(dir.get());  // best effort: the file itself is complete
  return absl::OkStatus();
}

absl::StatusOr<CheckpointReader> CheckpointReader::Open(const std::string& path) {
  CheckpointReader reader(path, Descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  const Descriptor& file = reader.file_;
  if (!file) return FileError("load", path);
  struct stat info;
  if (fstat(file.get(), &info) != 0) return FileError("load", path);
  std::string header(std::min<int64_t>(info.st_size, kLongestHeader), '\0');
  // The header ends with its first "end" line; what follows is data.
  RETURN_IF_ERROR(ReadAll(file, 0, header.data(),
                          std::min<int64_t>(kAlign, static_cast<int64_t>(header.size())), path));
  if (header.find("\nend\n") >= static_cast<size_t>(kAlign)) {
    RETURN_IF_ERROR(ReadAll(file, 0, header.data(), static_cast<int64_t>(header.size()), path));
  }
  absl::StatusOr<std::vector<CheckpointState>> states = ParseHeader(header);
  if (!states.ok()) return WithContext(states.status(), absl::StrCat("load ", path));
  reader.states_ = *std::move(states);
  if (!reader.states_.empty() &&
      info.st_size < reader.states_.back().offset + reader.states_.back().bytes()) {
    return absl::DataLossError(absl::StrCat("load ", path, ": the file is cut off"));
  }
  return reader;
}

absl::Status CheckpointReader::CheckStates(const std::vector<CheckpointState>& want) const {
  const auto text = [](const std::vector<CheckpointState>& states, size_t i) {
    if (i >= states.size()) return std::string("no more states");
    return absl::StrCat(states[i].name, " ", Name(states[i].type.dtype),
                        Text(states[i].type.shape));
  };
  for (size_t i = 0; i < std::max(want.size(), states_.size()); ++i) {
    if (text(want, i) == text(states_, i)) continue;
    return absl::FailedPreconditionError(absl::StrCat("load ", path_, ": of another program: want ",
                                                      text(want, i), ", have ", text(states_, i)));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CheckDigests() const {
  std::vector<char> piece;
  for (size_t i = 0; i < states_.size(); ++i) {
    const CheckpointState& s = states_[i];
    const auto size = static_cast<int64_t>(SizeOf(s.type.dtype));
    const int64_t elements = NumElements(s.type.shape), step = kPiece / size;
    uint64_t digest = 0;
    for (int64_t begin = 0; begin < elements; begin += step) {
      const int64_t count = std::min(step, elements - begin);
      piece.resize(count * size);
      RETURN_IF_ERROR(Read(i, begin, count, piece.data()));
      digest += DigestOf(s.type.dtype, begin, count, piece.data());
    }
    if (digest != s.digest)
      return absl::DataLossError(
          absl::StrCat("load ", path_, ": state ", s.name, " is not as it was saved"));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::Read(size_t state, int64_t begin, int64_t count,
                                    void* elements) const {
  const CheckpointState& s = states_[state];
  const auto size = static_cast<int64_t>(SizeOf(s.type.dtype));
  return ReadAll(file_, s.offset + begin * size, static_cast<char*>(elements), count * size, path_);
}

}  // namespace coconet
