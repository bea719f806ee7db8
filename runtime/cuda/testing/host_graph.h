#ifndef COCONET_RUNTIME_CUDA_TESTING_HOST_GRAPH_H_
#define COCONET_RUNTIME_CUDA_TESTING_HOST_GRAPH_H_

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/testing/host_stream.h"

namespace coconet {

/// In a stream, or in the graph that it is being captured for.
void RecordIn(HostStream& stream, HostEvent& event);
/// The same; a stream that waits for an event of a capture joins it. False: it may not, being of
/// another capture or the event of none.
bool WaitIn(HostStream& stream, HostEvent& event);

/// The driver's functions of graphs.
void FillGraphs(DriverApi& driver);

}  // namespace coconet

#endif  // COCONET_RUNTIME_CUDA_TESTING_HOST_GRAPH_H_
