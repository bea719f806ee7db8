#include "runtime/node/library_call.h"

#include "coconet/base/status.h"

namespace coconet {

absl::Status Communicate(Communicator& library, const CollectiveStep& s, const void* in,
                         void* out) {
  switch (s.kind) {
    case CollectiveStep::Kind::kAllReduce:
      return library.AllReduce(in, out, s.count, s.dtype, s.reduce);
    case CollectiveStep::Kind::kReduceScatter:
      return library.ReduceScatter(in, out, s.count, s.dtype, s.reduce, s.Stride());
    case CollectiveStep::Kind::kAllGather:
      return library.AllGather(in, out, s.count, s.dtype, s.Stride());
    case CollectiveStep::Kind::kBroadcast:
      return library.Broadcast(in, out, s.count, s.dtype, s.root);
    case CollectiveStep::Kind::kReduce:
      return library.Reduce(in, out, s.count, s.dtype, s.reduce, s.root);
    case CollectiveStep::Kind::kAllToAll:
      return library.AllToAll(in, out, s.count, s.dtype);
    case CollectiveStep::Kind::kSend:
      return library.Send(in, out, s.count, s.dtype, s.shift);
  }
  CC_CHECK(false);
}

}  // namespace coconet
