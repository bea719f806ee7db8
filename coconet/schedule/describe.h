#ifndef COCONET_SCHEDULE_DESCRIBE_H_
#define COCONET_SCHEDULE_DESCRIBE_H_

#include <string>

#include "coconet/schedule/schedule.h"

namespace coconet {

/// A schedule in words, in execution order, e.g. "AR; C", "RS; fuse(C); AG p; slice m v",
/// "fuse(RS, C, AG)".
std::string Describe(const Schedule& s);

}  // namespace coconet

#endif  // COCONET_SCHEDULE_DESCRIBE_H_
