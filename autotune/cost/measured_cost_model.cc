#include "autotune/cost/measured_cost_model.h"

#include <algorithm>
#include <cmath>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "coconet/base/fingerprint.h"
#include "coconet/base/status.h"

namespace coconet {
namespace {

/// The rates of memory for so many bytes.
Rates::Level LevelOf(const Rates& rates, double footprint) {
  const std::vector<Rates::Level>& levels = rates.levels;
  if (levels.empty()) return {};
  if (footprint <= levels.front().footprint) return levels.front();
  for (size_t i = 1; i < levels.size(); ++i) {
    const Rates::Level &a = levels[i - 1], &b = levels[i];
    if (footprint > b.footprint) continue;
    const double share = std::log(footprint / a.footprint) / std::log(b.footprint / a.footprint);
    const auto between = [&](double x, double y) {
      return x <= 0 || y <= 0 ? x + share * (y - x) : x * std::pow(y / x, share);
    };
    return {footprint, between(a.read, b.read), between(a.written, b.written)};
  }
  return levels.back();
}

/// (a^p + b^p)^(1/p)
double Overlapped(double a, double b, double p) {
  const double longer = std::max(a, b), shorter = std::min(a, b);
  return shorter <= 0 ? longer : longer * std::pow(1 + std::pow(shorter / longer, p), 1 / p);
}

double MultiplyAdds(double batch, double m, double n, double k) { return batch * m * n * k; }

/// How far a measured product is from one that is asked for.
double DistanceSquared(const Rates::Product& p, const Work& work) {
  const auto apart = [](int64_t a, int64_t b) {
    const double d = std::log2(static_cast<double>(std::max<int64_t>(a, 1)) /
                               static_cast<double>(std::max<int64_t>(b, 1)));
    return d * d;
  };
  // A batch changes a product's rate less than the extents of its matrices do.
  const int transposed = (p.transpose_a != work.transpose_a) + (p.transpose_b != work.transpose_b);
  return apart(p.m, work.m) + apart(p.n, work.n) + apart(p.k, work.k) +
         0.25 * apart(p.batch, work.batch) + 0.5 * transposed;
}

double ProductUs(const Rates& rates, const Work& work) {
  const double wanted = MultiplyAdds(static_cast<double>(work.batch), static_cast<double>(work.m),
                                     static_cast<double>(work.n), static_cast<double>(work.k));
  double weights = 0, sum = 0;
  for (const Rates::Product& p : rates.products) {
    if (p.dtype != work.dtype || p.us <= 0) continue;
    const double distance = DistanceSquared(p, work);
    if (distance == 0) return p.us;
    const double done = MultiplyAdds(static_cast<double>(p.batch), static_cast<double>(p.m),
                                     static_cast<double>(p.n), static_cast<double>(p.k));
    if (done <= 0) continue;
    const double weight = 1 / (distance * distance);
    weights += weight;
    sum += weight * std::log(p.us / done);
  }
  return weights == 0 ? 0 : wanted * std::exp(sum / weights);
}

/// How well a measured collective stands for another one.
int Likeness(const Rates::Collective& measured, const Work& work) {
  return 4 * (measured.group == work.group ? 1 : 0) +
         2 * (measured.kind == work.collective ? 1 : 0) +
         (measured.kind == CollectiveStep::Kind::kAllGather ? 1 : 0);
}

double CollectiveUs(const Rates& rates, const Work& work) {
  const auto like = absl::c_max_element(
      rates.collectives, [&](const Rates::Collective& a, const Rates::Collective& b) {
        return Likeness(a, work) < Likeness(b, work);
      });
  if (like == rates.collectives.end()) return 0;
  const double tensors = std::max(work.tensors, 1), each = work.bytes / tensors;
  double us = like->call;
  for (size_t part = 0; part < like->byte.size(); ++part)
    us += like->byte[part] * std::max(0.0, each - Rates::kBends[part]);
  return tensors * us;
}

/// At the rate of the fastest product that was measured, of memory, and of a collective's bytes.
double OpaqueUs(const Rates& rates, const Work& work) {
  double us_of_flop = 0;
  for (const Rates::Product& p : rates.products) {
    const double flops = 2 * MultiplyAdds(static_cast<double>(p.batch), static_cast<double>(p.m),
                                          static_cast<double>(p.n), static_cast<double>(p.k));
    if (p.us <= 0 || flops <= 0) continue;
    us_of_flop = us_of_flop == 0 ? p.us / flops : std::min(us_of_flop, p.us / flops);
  }
  const double computes = std::max(us_of_flop * work.flops, MemoryUs(rates, work));
  if (work.link_bytes == 0) return rates.launch_us + computes;
  const Work sent{.kind = Work::Kind::kCollective,
                  .collective = CollectiveStep::Kind::kAllGather,
                  .bytes = work.link_bytes,
                  .tensors = 1};
  return computes + CollectiveUs(rates, sent);
}

}  // namespace

double ComputationUs(const Rates& rates, const Work& work) {
  double divisions = 0, others = 0;
  for (size_t e = 0; e < kEfforts; ++e) {
    const auto effort = static_cast<Effort>(e);
    const bool divides = effort == Effort::kDivision || effort == Effort::kRoot;
    (divides ? divisions : others) += rates.effort[e] * work.efforts[e];
  }
  return Overlapped(divisions, others, rates.overlap_of_divisions);
}

double MemoryUs(const Rates& rates, const Work& work) {
  const Rates::Level level = LevelOf(rates, work.bytes_read + work.bytes_written);
  return level.read * (work.bytes_read + work.bytes_again) + level.written * work.bytes_written;
}

double KernelUs(const Rates& rates, const Work& work) {
  const bool of_rows = work[Effort::kDrain] > 0;
  return rates.launch_us + Overlapped(ComputationUs(rates, work), MemoryUs(rates, work),
                                      of_rows ? rates.overlap_of_rows : rates.overlap);
}

double MeasuredCostModel::Us(const Work& work) const {
  switch (work.kind) {
    case Work::Kind::kKernel:
      return KernelUs(rates_, work);
    case Work::Kind::kProduct:
      return ProductUs(rates_, work);
    case Work::Kind::kCollective:
      return CollectiveUs(rates_, work);
    case Work::Kind::kOpaque:
      return OpaqueUs(rates_, work);
  }
  CC_CHECK(false);
}

std::string Digest(const Work& work) {
  std::string text =
      absl::StrCat(static_cast<int>(work.kind), " ", Name(work.dtype), " ", work.bytes_read, " ",
                   work.bytes_written, " ", work.bytes_again, " ", work.arithmetic, " ",
                   work.transcendentals, " ", work.folded);
  for (double effort : work.efforts) absl::StrAppend(&text, " ", effort);
  absl::StrAppend(&text, " ", work.batch, " ", work.m, " ", work.n, " ", work.k, " ",
                  work.transpose_a ? 1 : 0, work.transpose_b ? 1 : 0, " ",
                  static_cast<int>(work.collective), " ", static_cast<int>(work.group), " ",
                  work.bytes, " ", work.tensors, " ", work.flops, " ", work.link_bytes);
  return Fingerprint(text);
}

double CorrectedCostModel::Us(const Work& work) const {
  const double predicted = model_.Us(work);
  if (measured_.empty()) return predicted;
  const auto found = measured_.find(Digest(work));
  if (found == measured_.end() || found->second.count <= 0) return predicted;
  const double n = found->second.count;
  return predicted * std::exp(n / (n + 1) * found->second.log_ratio);
}

}  // namespace coconet
