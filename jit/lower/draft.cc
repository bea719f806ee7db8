#include "jit/lower/draft.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// Where the buffers of programs are in the plan: first those that tensors share, which programs
/// know by the same names, then those of each tensor.
class Places {
 public:
  explicit Places(const Programs& programs);
  std::vector<Buffer> TakeBuffers() { return std::move(buffers_); }

  void Place(int& buffer, int tensor) const;
  void Place(std::vector<Arg>& args, int tensor) const;

 private:
  const Programs& programs_;
  std::vector<Buffer> buffers_;
  std::vector<std::vector<int>> numbers_;  // by program and buffer: in the plan where it is shared,
                                           // else among those of its tensor
  std::vector<int> first_;                 // by tensor: the first of its buffers in the plan
};

Places::Places(const Programs& programs) : programs_(programs) {
  std::map<std::string, int> shared;
  for (int program = 0; program < programs.size(); ++program) {
    const BufferTable& table = programs[program].table;
    std::vector<int>& numbers = numbers_.emplace_back();
    int of_tensor = 0;
    for (size_t b = 0; b < table.buffers.size(); ++b) {
      if (table.each[b]) {
        numbers.push_back(of_tensor++);
        continue;
      }
      const auto [number, is_new] =
          shared.try_emplace(table.buffers[b].name, static_cast<int>(buffers_.size()));
      if (is_new) buffers_.push_back(table.buffers[b]);
      numbers.push_back(number->second);
    }
  }
  for (int tensor = 0; tensor < programs.tensors(); ++tensor) {
    first_.push_back(static_cast<int>(buffers_.size()));
    const BufferTable& table = programs[programs.of(tensor)].table;
    for (size_t b = 0; b < table.buffers.size(); ++b) {
      if (!table.each[b]) continue;
      buffers_.push_back(table.buffers[b]);
      buffers_.back().name = TensorName(buffers_.back().name, tensor);
    }
  }
}

void Places::Place(int& buffer, int tensor) const {
  const int program = programs_.of(tensor);
  buffer = numbers_[program][buffer] + (programs_[program].table.each[buffer] ? first_[tensor] : 0);
}

void Places::Place(std::vector<Arg>& args, int tensor) const {
  for (Arg& arg : args) {
    if (arg.buffer >= 0) Place(arg.buffer, tensor);
  }
}

}  // namespace

Draft::Draft(const Target& target) {
  lowered_.plan.ranks = target.ranks;
  lowered_.plan.nodes = target.nodes;
  lowered_.plan.stages = target.stages;
  std::fill(std::begin(last_on_), std::end(last_on_), -1);
}

void Draft::Continue(int lane, int after) {
  lane_ = lane;
  after_ = after >= 0 ? std::vector<int>{after} : std::vector<int>{};
}

Lowered Draft::Finish(const Programs& programs) && {
  Places places(programs);
  for (Entry& entry : steps_) {
    // The rows of a table are of other tensors than the step.
    std::vector<std::vector<Arg>> rows;
    auto* const kernel = std::get_if<KernelStep>(&entry.step);
    if (kernel != nullptr) rows.swap(kernel->tensors);
    ForBuffers(entry.step, [&](int& buffer) { places.Place(buffer, entry.tensor); });
    for (size_t row = 0; row < rows.size(); ++row) places.Place(rows[row], entry.rows[row]);
    if (kernel != nullptr) rows.swap(kernel->tensors);
    lowered_.plan.steps.push_back(std::move(entry.step));
  }
  lowered_.plan.buffers = places.TakeBuffers();
  return std::move(lowered_);
}

}  // namespace coconet
