#include "tests/mutations.h"

#include <iterator>
#include <utility>

#include "coconet/base/status.h"

namespace coconet {

std::string Name(const MutationKind& kind) {
  return std::visit(Match{[](FindingKind finding) { return std::string(Name(finding)); },
                          [](WrongAnswer) { return std::string("wrong answer"); }},
                    kind);
}

const std::vector<Mutation>& Mutations() {
  static const auto* mutations = [] {
    auto* all = new std::vector<Mutation>();
    for (std::vector<Mutation> some :
         {FlagMutations(), OperandMutations(), ElementMutations(), ProductMutations()}) {
      all->insert(all->end(), std::make_move_iterator(some.begin()),
                  std::make_move_iterator(some.end()));
    }
    return all;
  }();
  return *mutations;
}

}  // namespace coconet
