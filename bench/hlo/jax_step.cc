#include "bench/hlo/jax_step.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "coconet/base/status.h"
#include "coconet/hlo/text/hlo_parser.h"
#include "jit/compile/process.h"

namespace coconet::bench {
namespace {

namespace fs = std::filesystem;

constexpr char kScript[] = "bench/hlo/gpt_step.py";
constexpr int kNoJax = 3;  // exit code of the script

std::string Contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

template <class T>
std::vector<T> Numbers(const fs::path& path) {
  const std::string bytes = Contents(path);
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(numbers.data()));
  return numbers;
}

absl::Status Write(const fs::path& path, const std::vector<float>& numbers) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(numbers.data()),
            static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  out.close();
  return out ? absl::OkStatus() : absl::InternalError(absl::StrCat("cannot write ", path.string()));
}

}  // namespace

absl::StatusOr<JaxStep> JaxStep::Make(const std::string& python, const std::string& folder,
                                      const JaxSizes& sizes) {
  JaxStep step;
  step.python_ = python;
  step.folder_ = folder;
  step.steps_ = sizes.steps;
  constexpr double kMostSeconds = 300;
  RETURN_IF_ERROR(
      step.RunScript(
              {"make", folder, absl::StrCat("--ranks=", sizes.ranks),
               absl::StrCat("--steps=", sizes.steps), absl::StrCat("--layers=", sizes.layers),
               absl::StrCat("--width=", sizes.width), absl::StrCat("--heads=", sizes.heads),
               absl::StrCat("--vocabulary=", sizes.vocabulary),
               absl::StrCat("--length=", sizes.length),
               absl::StrCat("--examples=", sizes.examples)},
              kMostSeconds)
          .status());
  ASSIGN_OR_RETURN(const HloModule module, ParseHlo(Contents(fs::path(folder) / "step.hlo")));
  ASSIGN_OR_RETURN(step.imported_, ImportHlo(module));
  for (absl::string_view line : absl::StrSplit(Contents(fs::path(folder) / "manifest.txt"), '\n')) {
    if (absl::StartsWith(line, "parameter ")) step.are_data_.push_back(false);
    if (absl::StartsWith(line, "data ")) step.are_data_.push_back(true);
  }
  if (step.are_data_.size() == step.imported_.parameters.size()) return step;
  return absl::InternalError(absl::StrCat(kScript, ": want a line for each of ",
                                          step.imported_.parameters.size(), " parameters, have ",
                                          step.are_data_.size()));
}

absl::StatusOr<std::string> JaxStep::RunScript(std::vector<std::string> arguments,
                                               double limit_s) const {
  ProcessCommand command;
  command.argv = {python_, kScript};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.time_limit_s = limit_s;
  ASSIGN_OR_RETURN(Finished finished, RunProcess(command));
  const bool exited = finished.how == Finished::How::kExited;
  if (exited && finished.code == 0) return std::move(finished.output);
  if (exited && finished.code == kNoJax)
    return absl::UnavailableError(absl::StrCat(python_, " has no JAX: ", finished.output));
  const std::string& output = finished.output;
  constexpr size_t kEnd = 1000;
  return absl::InternalError(
      absl::StrCat(kScript, " ", arguments[0], ": ",
                   output.substr(output.size() < kEnd ? 0 : output.size() - kEnd)));
}

absl::StatusOr<std::string> JaxStep::Compare() const {
  constexpr double kMostSeconds = 600;
  return RunScript({"compare", folder_}, kMostSeconds);
}

absl::StatusOr<JaxStep::Time> JaxStep::Measure(double seconds) const {
  ASSIGN_OR_RETURN(
      const std::string output,
      RunScript({"time", folder_, absl::StrCat("--seconds=", seconds)}, 120 + 4 * seconds));
  Time time;
  bool has_step = false;
  for (absl::string_view line : absl::StrSplit(output, '\n')) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
    if (words.size() == 5 && words[0] == "step") {
      has_step = absl::SimpleAtod(words[1], &time.step.median_us) &&
                 absl::SimpleAtod(words[2], &time.step.low_us) &&
                 absl::SimpleAtod(words[3], &time.step.high_us) &&
                 absl::SimpleAtoi(words[4], &time.step.samples);
    }
    if (words.size() == 2 && words[0] == "version") time.version = std::string(words[1]);
  }
  if (has_step) return time;
  return absl::InternalError(absl::StrCat(kScript, " time: want a line 'step ...', have ", output));
}

absl::StatusOr<std::unique_ptr<JaxTraining>> JaxTraining::Make(Session& session,
                                                               const JaxStep& step) {
  ASSIGN_OR_RETURN(TunedProgram tuned, session.Compile(step.imported().program));
  auto training = std::unique_ptr<JaxTraining>(new JaxTraining(session, step, std::move(tuned)));
  RETURN_IF_ERROR(training->Bind());
  return training;
}

absl::Status JaxTraining::Bind() {
  const ImportedHlo& imported = step_.imported();
  std::vector<Binding> bindings = {{imported.results.back(), absl::MakeSpan(&loss_, 1)}};
  ReadData(0);
  for (size_t k = 0; k < data_.size(); ++k) {
    if (step_.are_data()[k]) bindings.push_back({imported.parameters[k], absl::MakeSpan(data_[k])});
  }
  ASSIGN_OR_RETURN(BoundProgram bound, tuned_.Bind(bindings));
  bound_ = std::make_unique<BoundProgram>(std::move(bound));
  for (size_t k = 0; k < data_.size(); ++k) {
    if (step_.are_data()[k]) continue;
    const auto before = Numbers<float>(fs::path(step_.folder()) / absl::StrCat(k, ".before"));
    RETURN_IF_ERROR(
        bound_->Write(imported.parameters[k], before.data(), static_cast<int64_t>(before.size())));
  }
  return absl::OkStatus();
}

void JaxTraining::ReadData(int at) {
  for (size_t k = 0; k < data_.size(); ++k) {
    if (!step_.are_data()[k]) continue;
    const auto now =
        Numbers<int32_t>(fs::path(step_.folder()) / absl::StrCat(k, ".", at, ".", session_.rank()));
    data_[k].resize(now.size());
    absl::c_copy(now, data_[k].begin());
  }
}

absl::Status JaxTraining::Train() {
  for (int at = 0; at < step_.steps(); ++at) {
    ReadData(at);
    RETURN_IF_ERROR(bound_->Run());
    losses_.push_back(loss_);
  }
  return Save();
}

absl::Status JaxTraining::Run(int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) RETURN_IF_ERROR(bound_->Run());
  return absl::OkStatus();
}

absl::Status JaxTraining::Save() {
  const fs::path folder = step_.folder();
  for (size_t k = 0; k < data_.size(); ++k) {
    if (step_.are_data()[k]) continue;
    std::vector<float> after(fs::file_size(folder / absl::StrCat(k, ".before")) / sizeof(float));
    RETURN_IF_ERROR(bound_->Read(step_.imported().parameters[k], after.data(),
                                 static_cast<int64_t>(after.size())));
    if (session_.rank() == 0) RETURN_IF_ERROR(Write(folder / absl::StrCat(k, ".ours"), after));
  }
  return session_.rank() == 0 ? Write(folder / "losses.ours", losses_) : absl::OkStatus();
}

}  // namespace coconet::bench
