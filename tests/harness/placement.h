#pragma once

#include <cstdint>
#include <string>

#include "coconet/ir/types.h"

namespace coconet {

/// Where the elements of a tensor lie in one rank's buffer. Computed independently of the library,
/// but for where parts by weight are cut, so that tests can compare the two.
class Placement {
 public:
  Placement(const TensorType& type, int ranks, int rank);

  const TensorType& type() const { return type_; }
  /// Elements of the tensor that this rank stores.
  int64_t elements() const { return outer_ * run_; }

  /// f(place in the rank's buffer, index in the global tensor), in the order of the global indices.
  template <class F>
  void ForEach(F f) const {
    for (int64_t o = 0; o < outer_; ++o) {
      for (int64_t k = 0; k < run_; ++k) f(o * stride_ + k, o * row_ + begin_ + k);
    }
  }

  /// f(place, elements) for each contiguous run.
  template <class F>
  void ForEachRun(F f) const {
    for (int64_t o = 0; o < outer_; ++o) f(o * stride_, run_);
  }

  /// The rank's elements of `buffer`, without padding.
  std::string Read(const void* buffer) const;

  // The following are about sliced tensors.
  /// The rank that holds an element.
  int OwnerOf(int64_t index) const { return static_cast<int>((index % row_ + shift_) / stride_); }
  /// Index of an element of this rank in what Read returns.
  int64_t Find(int64_t index) const { return index / row_ * run_ + index % row_ - begin_; }

 private:
  TensorType type_;
  int64_t outer_ = 1;   // runs
  int64_t run_ = 0;     // contiguous elements in each
  int64_t stride_ = 0;  // between runs in the buffer
  int64_t row_ = 0;     // between runs in the tensor
  int64_t begin_ = 0;   // of the first run in the tensor
  int64_t shift_ = 0;   // sliced by weights: rank r's runs begin at r * stride_ - shift_
};

}  // namespace coconet
