#pragma once

#include "runtime/cuda/driver/driver_api.h"
#include "runtime/cuda/testing/host_stream.h"

namespace coconet {

/// Records the event in the stream, or in the graph during a capture.
void RecordIn(HostStream& stream, HostEvent& event);
/// Lets the stream, or its branch of the graph, wait for the event. Joins the capture in which the
/// event was recorded. False if the stream is in a capture other than the event's.
bool WaitIn(HostStream& stream, HostEvent& event);

/// Sets the driver's functions of graphs.
void FillGraphs(DriverApi& driver);

}  // namespace coconet
