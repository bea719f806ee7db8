#include "tests/mutation/planted/mutations.h"

#include <initializer_list>

#include "absl/algorithm/container.h"
#include "coconet/base/status.h"

namespace coconet {

std::string Name(const MutationKind& kind) {
  return std::visit(Match{[](FindingKind finding) { return std::string(Name(finding)); },
                          [](WrongAnswer) { return std::string("wrong answer"); },
                          [](HostFinding finding) { return std::string(Name(finding)); }},
                    kind);
}

absl::string_view Name(HostFinding finding) {
  switch (finding) {
    case HostFinding::kWrongElement:
      return "wrong element";
    case HostFinding::kReplicas:
      return "replicas differ";
    case HostFinding::kGuard:
      return "written behind a buffer";
    case HostFinding::kChangedInput:
      return "changed input";
    case HostFinding::kRunError:
      return "run error";
    case HostFinding::kLowerError:
      return "lower error";
    case HostFinding::kCompileError:
      return "compile error";
    case HostFinding::kCrash:
      return "crash";
    case HostFinding::kUnseen:
      return "unseen mistake";
  }
  CC_CHECK(false);
}

bool IsCaught(const Mutation& mutation, const MutationOutcome& outcome) {
  return outcome.kind.has_value() && absl::c_linear_search(mutation.expected, *outcome.kind);
}

static std::vector<Mutation> Joined(std::initializer_list<std::vector<Mutation>> lists) {
  std::vector<Mutation> all;
  for (const std::vector<Mutation>& some : lists) all.insert(all.end(), some.begin(), some.end());
  return all;
}

const std::vector<Mutation>& Mutations() {
  static const auto& mutations = *new std::vector<Mutation>(
      Joined({FlagMutations(), OperandMutations(), ElementMutations(), BulkMutations(),
              PackMutations(), ProductMutations(), WideTileMutations(), TmaTileMutations(),
              FusedTileMutations(), RowMutations()}));
  return mutations;
}

const std::vector<Mutation>& HostMutations() {
  static const auto& mutations = *new std::vector<Mutation>(
      Joined({HostHeaderMutations(), HostRowMutations(), HostKernelMutations(), LoweringMutations(),
              VerificationMutations()}));
  return mutations;
}

}  // namespace coconet
