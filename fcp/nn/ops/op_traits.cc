#include "fcp/nn/ops/op_traits.h"

#include "fcp/nn/ops/output_types.h"

namespace fcp {
namespace {

const OpTable<OpFacts>& all_facts() {
  static const OpTable<OpFacts> all = [] {
    using Bytes = OpFacts::Bytes;
    using Range = OpFacts::Range;
    using Axes = OpFacts::Axes;
    OpTable<OpFacts> made;
#define FCP_OPERATOR(domain, name, make, known, ...) \
  made[domain][name] = OpFacts{.traits = known __VA_OPT__(, ) __VA_ARGS__};
#include "fcp/nn/ops/operators.inc"
#undef FCP_OPERATOR
    return made;
  }();
  return all;
}

}  // namespace

const OpFacts& facts_of(const Node& node) {
  static const OpFacts unknown;
  const OpFacts* facts = find_op(all_facts(), node);
  return facts == nullptr ? unknown : *facts;
}

}  // namespace fcp
