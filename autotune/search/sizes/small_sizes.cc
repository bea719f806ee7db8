#include "autotune/search/sizes/small_sizes.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "autotune/search/sizes/extent_relations.h"
#include "coconet/ir/infer.h"
#include "coconet/ir/lists.h"
#include "coconet/ir/op_table.h"
#include "coconet/ir/operand_index.h"

namespace coconet {
namespace {

/// Approximate number of tensors of a shrunk list.
constexpr size_t kSmallTensors = 8;
/// Products that the interpreter computes in a fraction of a second, for each set of data.
constexpr double kMostProducts = 0x1p22;
/// Three along each of two dimensions.
constexpr int64_t kFewBlocks = 9;
/// Bounds on images (RelatedImages) up to this one are tried whatever size is asked for.
constexpr int64_t kLeastBound = 16;
/// Numbers that a search for small extents tries to replace.
constexpr int kMostTries = 10'000;

/// Sizes of a few tensors of a list: one per size, up to a few sizes, and the first size once more.
std::vector<int64_t> FewOf(const std::vector<int64_t>& sizes, const TensorKinds& kinds) {
  if (sizes.size() <= kSmallTensors) return sizes;
  std::vector<int64_t> few;
  for (size_t k = 0; k < kinds.first.size() && k < kSmallTensors; ++k)
    few.push_back(sizes[kinds.first[k]]);
  few.push_back(sizes[kinds.first[0]]);
  return few;
}

/// Extents, and begins and ends of ranges.
using Numbers = std::set<int64_t>;
/// By number of the program: what stands for it in the small one.
using Images = std::map<int64_t, int64_t>;

/// Looks for images of related numbers: smaller ones for as many as it can, odd multiples before
/// others. Numbers up to 2 stay what they are, and no other gets below 2, since
/// an extent of 1 is broadcast.
class RelatedImages {
 public:
  /// No image that is chosen is above `most` units, of which each is as much of to.multiple, of a
  /// number of scales of slices as much of to.parts, as divides the number.
  RelatedImages(const std::set<Relation>& relations, int64_t most, const SmallSize& to)
      : relations_(relations), most_(most), to_(to) {}

  std::optional<Images> Find() {
    Images images;
    for (const Relation& relation : relations_) {
      if (relation.keeps > 0) images[relation.keeps] = relation.keeps;
      for (const std::vector<int64_t>* side : {&relation.left, &relation.right}) {
        for (int64_t number : *side) {
          numbers_.insert(number);
          if (number <= 2) images[number] = number;
        }
      }
    }
    return Complete(std::move(images));
  }

 private:
  /// Adds what follows from the images; false: they contradict a relation.
  bool Propagate(Images& images) const {
    for (bool changes = true; changes;) {
      changes = false;
      for (const Relation& relation : relations_) {
        int64_t missing = -1;
        int count = 0;
        bool is_left = false;
        for (const std::vector<int64_t>* side : {&relation.left, &relation.right}) {
          for (int64_t number : *side) {
            if (images.contains(number)) continue;
            ++count;
            missing = number;
            is_left = side == &relation.left;
          }
        }
        if (count > 1) continue;
        int64_t left = ValueOf(relation.left, relation.is_product, images),
                right = ValueOf(relation.right, relation.is_product, images);
        if (count == 0) {
          if (left != right) return false;
          continue;
        }
        if (is_left) std::swap(left, right);  // `right` lacks the number
        if (relation.is_product && (right == 0 || left % right != 0)) return false;
        const int64_t image = relation.is_product ? left / right : left - right;
        if (image < 2 || image > missing) return false;
        images[missing] = image;
        changes = true;
      }
    }
    return true;
  }

  static int64_t ValueOf(const std::vector<int64_t>& side, bool is_product, const Images& images) {
    int64_t value = is_product ? 1 : 0;
    for (int64_t number : side) {
      const auto image = images.find(number);
      if (image == images.end()) continue;
      value = is_product ? value * image->second : value + image->second;
    }
    return value;
  }

  std::optional<Images> Complete(Images images) {
    if (!Propagate(images)) return std::nullopt;
    const auto open = absl::c_find_if(numbers_, [&](int64_t n) { return !images.contains(n); });
    if (open == numbers_.end()) return images;
    for (const int64_t image : ImagesFor(*open, images)) {
      if (++tries_ > kMostTries) return std::nullopt;
      Images more = images;
      more[*open] = image;
      if (std::optional<Images> all = Complete(std::move(more)); all.has_value()) return all;
    }
    return std::nullopt;
  }

  /// What a number's images are multiples of, and how many of these are tried always.
  struct Units {
    int64_t unit = 1, few = 1;
  };
  Units UnitsOf(int64_t number) const {
    Units units{.unit = to_.multiple};
    for (const Relation& relation : relations_) {
      if (relation.keeps == 0 || !absl::c_linear_search(relation.left, number)) continue;
      if (relation.of_slices && to_.parts > 1) return {.unit = to_.parts};
      units = {.unit = 1, .few = 2};  // one scale would be of the whole dimension
    }
    return units;
  }

  /// The images to try, the best first; the number itself is the last.
  std::vector<int64_t> ImagesFor(int64_t number, const Images& images) const {
    const Units units_of = UnitsOf(number);
    const int64_t unit = std::gcd(number, units_of.unit), most = std::max(most_, units_of.few);
    std::vector<int64_t> candidates;
    for (const int64_t first : {most | 1, most & ~int64_t{1}}) {
      for (int64_t units = first; units > 0; units -= 2) {
        const int64_t image = unit * units;
        if (image > 1 && image < number) candidates.push_back(image);
      }
    }
    absl::c_stable_partition(candidates, [&](int64_t image) {
      return absl::c_none_of(images, [&](const auto& taken) { return taken.second == image; });
    });
    // A product of numbers may have to be that of their images.
    for (const auto& [factor, image] : images) {
      const auto other =
          factor > 1 && number % factor == 0 ? images.find(number / factor) : images.end();
      if (other != images.end() && image * other->second < number)
        candidates.push_back(image * other->second);
    }
    candidates.push_back(number);
    return candidates;
  }

  const std::set<Relation>& relations_;
  const int64_t most_;
  const SmallSize to_;
  Numbers numbers_;
  int tries_ = 0;
};

/// Adds different odd multiples of `multiple`, up to `cap`, or a little above where there are too
/// few. Extents without such a multiple stay what they are.
void AddFree(const Numbers& extents, int64_t cap, int64_t multiple, Images& images) {
  Numbers taken = {0, 1};
  for (const auto& [number, image] : images) taken.insert(image);
  for (int64_t extent : extents) {
    if (extent > 2 || images.contains(extent)) continue;
    images[extent] = extent;
    taken.insert(extent);
  }
  for (int64_t extent : extents) {
    if (images.contains(extent)) continue;
    const auto is_free = [&](int64_t parts) {
      return parts > 0 && parts * multiple > 2 && parts * multiple <= extent &&
             taken.count(parts * multiple) == 0;
    };
    const int64_t most = std::min(((extent - 1) / multiple) | 1, (cap / multiple) | 1);
    int64_t parts = most;
    while (parts > 0 && !is_free(parts)) parts -= 2;
    for (int64_t more = most; parts < 0 && more * multiple <= extent; more += 2) {
      if (is_free(more)) parts = more;
    }
    images[extent] = parts > 0 ? parts * multiple : extent;
    taken.insert(images[extent]);
  }
}

/// The extents of declarations and scatters, and of a few tensors of lists.
Numbers ExtentsOf(const Graph& program) {
  Numbers extents;
  for (const Node& node : program.nodes) {
    if (const auto* scatter = std::get_if<ScatterAdd>(&node.op);
        scatter != nullptr && scatter->shape[0].bound())
      extents.insert(scatter->shape[0].size);
    const TensorType* type = DeclaredType(node.op);
    if (type == nullptr) continue;
    for (const Dim& dim : type->shape) {
      if (dim.bound()) extents.insert(dim.size);
    }
  }
  for (const auto& [symbol, sizes] : program.lists) {
    const std::vector<int64_t> few = FewOf(sizes, KindsOf(program));
    extents.insert(few.begin(), few.end());
  }
  return extents;
}

size_t MostDims(const Graph& program) {
  size_t dims = 1;
  for (const Node& node : program.nodes) {
    const TensorType* type = DeclaredType(node.op);
    if (type != nullptr) dims = std::max(dims, type->shape.size());
  }
  return dims;
}

/// The elements of the largest blocks with a scale each, along dimensions that have several blocks;
/// 1 if there are none.
int64_t LargestBlock(const Graph& program, const std::vector<TensorType>& types) {
  int64_t largest = 1;
  for (NodeId id = 0; id < program.size(); ++id) {
    if (!IsScaledProduct(program, id)) continue;
    const std::vector<NodeId>& inputs = program.nodes[id].inputs;
    for (size_t i : {0, 1}) {
      const Shape &of = types[inputs[i]].shape, &by = types[inputs[i + 2]].shape;
      if (!IsBound(of) || !IsBound(by)) continue;
      const std::vector<int64_t> blocks = BlocksOf(of, by);
      int64_t block = 1;
      for (size_t d = 0; d < of.size(); ++d) block *= by[d].size > 1 ? blocks[d] : 1;
      largest = std::max(largest, block);
    }
  }
  return largest;
}

/// Whether the program has types, and is small enough to be interpreted on many sets of data.
/// Tensors of a few blocks, on each of as many ranks, are, since blocks stay whole.
bool IsSmall(const Graph& program, int64_t elements, int64_t ranks) {
  const absl::StatusOr<std::vector<TensorType>> types = InferTypes(program);
  if (!types.ok()) return false;
  const int64_t block = LargestBlock(program, *types);
  if (block > 1) elements = std::max(2 * elements, kFewBlocks * ranks * block);
  const bool fits = absl::c_all_of(*types, [&](const TensorType& type) {
    return !IsBound(type.shape) || NumElements(type.shape) <= elements;
  });
  // Programs with whole blocks have more products, for kernels in tiles to have as many rows as
  // these want.
  const double products =
      block == 1 ? kMostProducts : 2 * kMostProducts * static_cast<double>(ranks);
  return fits && ProductsOf(program) <= products;
}

/// SmallExtents of a program whose operations relate extents: the largest that are small enough,
/// else the least. None: they are still too large.
std::optional<Images> RelatedExtents(const Graph& program, const std::set<Relation>& relations,
                                     const Numbers& extents, int64_t cap, const SmallSize& to) {
  std::optional<Images> best, least;
  for (int64_t most = 1; most <= std::max(cap, kLeastBound); most += 2 * (1 + most / 8)) {
    std::optional<Images> images = RelatedImages(relations, most, to).Find();
    if (!images.has_value()) continue;
    AddFree(extents, std::min(cap, most * most * to.multiple), to.multiple, *images);
    const Graph small = WithExtents(program, *images);
    if (IsSmall(small, 2 * to.elements, to.parts)) {
      best = std::move(images);
    } else if (best.has_value()) {
      break;
    } else if (!least.has_value() && IsSmall(small, 2 * SmallSize().elements, to.parts)) {
      least = std::move(images);
    }
  }
  return best.has_value() ? best : least;
}

}  // namespace

double ProductsOf(const Graph& program) {
  const absl::StatusOr<std::vector<TensorType>> types = InferTypes(program);
  double products = 0;
  for (NodeId id = 0; types.ok() && id < program.size(); ++id) {
    const auto* product = std::get_if<MatMul>(&program.nodes[id].op);
    if (product == nullptr || !IsBound((*types)[id].shape)) continue;
    const Shape& a = (*types)[program.nodes[id].inputs[0]].shape;
    const int64_t summed = a[a.size() - (product->transpose_a ? 2 : 1)].size;
    products += static_cast<double>(NumElements((*types)[id].shape)) * static_cast<double>(summed);
  }
  return products;
}

Graph WithExtents(const Graph& program, const std::map<int64_t, int64_t>& extents) {
  Graph out = program;
  const auto image_of = [&](int64_t number) {
    const auto image = extents.find(number);
    return image == extents.end() ? number : image->second;
  };
  for (Node& node : out.nodes) {
    if (Shape* const shape = DeclaredShape(node.op)) {
      for (Dim& dim : *shape) {
        if (dim.bound()) dim.size = image_of(dim.size);
      }
    }
    if (auto* const range = std::get_if<SubTensor>(&node.op)) {
      range->begin = image_of(range->begin);
      range->end = image_of(range->end);
    }
  }
  return out;
}

std::map<int64_t, int64_t> SmallExtents(const Graph& program, const SmallSize& to) {
  const Numbers extents = ExtentsOf(program);
  const auto cap = static_cast<int64_t>(
      std::pow(static_cast<double>(to.elements), 1.0 / static_cast<double>(MostDims(program))));
  const std::set<Relation> relations = RelationsOf(program, kSmallTensors);
  Images images;
  if (relations.empty()) {
    AddFree(extents, cap, to.multiple, images);
    return images;
  }
  for (const int64_t multiple : {to.multiple, int64_t{1}}) {
    const SmallSize size{.elements = to.elements, .multiple = multiple, .parts = to.parts};
    if (std::optional<Images> found = RelatedExtents(program, relations, extents, cap, size))
      return *std::move(found);
  }
  for (int64_t extent : extents) images[extent] = extent;
  return images;
}

Graph Shrink(const Graph& program, const SmallSize& to) {
  const std::map<int64_t, int64_t> small = SmallExtents(program, to);
  Graph out = WithExtents(program, small);
  for (auto& [symbol, sizes] : out.lists) {
    sizes = FewOf(sizes, KindsOf(program));
    for (int64_t& size : sizes) size = small.at(size);
  }
  return InferTypes(out).ok() && CheckLists(out).ok() ? out : program;
}

}  // namespace coconet
