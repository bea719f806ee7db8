/* Random tensors and random calls, most of them wrong: a binding is made exactly where all of its
 * tensors are right, steps compute what a model computes, and wrong calls change nothing. */
#include <time.h>

#include "autotune/c/testing/checks.h"

enum { kN = 60, kArena = 4096, kRounds = 4000, kCalls = 6, kStates = 4 };
static const char* const kNames[kStates] = {"g", "p", "m", "first"};

static uint64_t state;
static uint64_t Draw(uint64_t below) { /* xorshift64* */
  state ^= state >> 12;
  state ^= state << 25;
  state ^= state >> 27;
  return (state * 2685821657736338717u >> 33) % below;
}
static int OneIn(uint64_t n) { return Draw(n) == 0; }

/* A tensor, and the array that has its elements. */
typedef struct Drawn {
  float arena[kArena];
  int64_t shape[3], strides[3];
  DLTensor tensor;
  int right;    /* the library takes it for a tensor that a step only reads */
  int distinct; /* no two elements are at one address: what a step writes needs that, too */
} Drawn;

static float* At(const Drawn* drawn, int i) {
  const int64_t step = drawn->tensor.strides == NULL ? 1 : drawn->strides[drawn->tensor.ndim - 1];
  return (float*)((char*)drawn->tensor.data + drawn->tensor.byte_offset) + i * step;
}

/* A vector of kN elements whose strides keep it inside of the arena; in one of four, one thing is
 * wrong. */
static void DrawTensor(Drawn* drawn) {
  static const int64_t kSteps[] = {1, 1, 1, 2, -1, 3, -7, 30, 0};
  for (int i = 0; i < kArena; ++i) drawn->arena[i] = (float)Draw(16);
  drawn->shape[0] = kN;
  drawn->strides[0] = kSteps[Draw(9)];
  DLTensor* tensor = &drawn->tensor;
  *tensor = VectorOf(drawn->arena + kArena / 2 - Draw(64), drawn->shape);
  if (OneIn(2)) tensor->strides = drawn->strides;
  if (OneIn(3)) tensor->byte_offset = 4 * Draw(50);
  drawn->distinct = tensor->strides == NULL || drawn->strides[0] != 0;
  drawn->right = !OneIn(4);
  if (drawn->right) {
    if (OneIn(3)) tensor->device.device_type = kDLCUDAHost;
    return;
  }
  static const int64_t kExtents[] = {kN - 1, kN + 1, 0, -1, -kN, INT64_MAX, INT64_MIN, 1};
  static const int kDimensions[] = {0, 2, 3, -1, 65, INT32_MAX, INT32_MIN};
  static const DLDataType kDtypes[] = {{kDLFloat, 64, 1}, {kDLInt, 32, 1},    {kDLUInt, 32, 1},
                                       {kDLFloat, 32, 4}, {kDLFloat, 31, 1},  {kDLComplex, 64, 1},
                                       {200, 32, 1},      {kDLBfloat, 16, 1}, {kDLFloat, 0, 0}};
  static const int kDevices[] = {kDLCUDA, kDLVulkan, 0, -1, 1000};
  switch (Draw(6)) {
    case 0:
      drawn->shape[0] = kExtents[Draw(8)];
      break;
    case 1:
      tensor->ndim = kDimensions[Draw(7)];
      drawn->shape[0] = kN / 2;
      drawn->shape[1] = 2;
      drawn->shape[2] = 1;
      drawn->strides[1] = drawn->strides[2] = 1;
      break;
    case 2:
      tensor->dtype = kDtypes[Draw(9)];
      break;
    case 3:
      tensor->device.device_type = (DLDeviceType)kDevices[Draw(5)];
      break;
    case 4:
      tensor->data = NULL;
      break;
    default:
      tensor->shape = NULL;
  }
}

/* What the tensors of a binding hold. */
typedef struct Model {
  float values[kStates][kN];
  double lr;
} Model;
enum { kG, kP, kM, kFirst };

static void Step(Model* model) {
  for (int i = 0; i < kN; ++i) {
    float* const m = &model->values[kM][i];
    *m = 0.5f * *m + model->values[kG][i];
    model->values[kP][i] -= (float)model->lr * *m;
    model->values[kFirst][i] = *m;
  }
}

/* Calls that fail, whatever the binding is. */
static void CallWrongly(coconet_binding* binding, Drawn* drawn) {
  static const char* const kWrong[] = {"", "q", "gg", "p ", NULL, "\xff\xfe"};
  const char* const wrong = kWrong[Draw(6)];
  int number = -1;
  DrawTensor(drawn);
  const int writable = drawn->right && (drawn->tensor.strides == NULL || drawn->strides[0] == 1);
  switch (Draw(9)) {
    case 0:
      CHECK(coconet_set_named(binding, wrong, 1) != COCONET_OK);
      break;
    case 1:
      CHECK(coconet_set(binding, 1 + (int)Draw(INT32_MAX), 1) != COCONET_OK);
      break;
    case 2:
      CHECK(coconet_scalar(binding, wrong, &number) != COCONET_OK && number == -1);
      break;
    case 3:
      CHECK(coconet_run_steps(binding, -1 - (int64_t)Draw(INT32_MAX)) != COCONET_OK);
      break;
    case 4:
      CHECK(coconet_read(binding, wrong, &drawn->tensor) != COCONET_OK);
      break;
    case 5:
      if (writable) return;
      CHECK(coconet_read(binding, "p", &drawn->tensor) != COCONET_OK);
      break;
    case 6:
      if (writable) return;
      CHECK(coconet_write(binding, "p", &drawn->tensor) != COCONET_OK);
      break;
    case 7:
      CHECK(coconet_load(binding, wrong) != COCONET_OK);
      break;
    default:
      CHECK(coconet_enqueue(binding, NULL) != COCONET_OK);
  }
  CHECK(coconet_last_error()[0] != '\0');
}

/* Reads a tensor that is not bound. */
static void CheckRead(coconet_binding* binding, const char* name, const float* want) {
  float values[kN];
  int64_t shape = kN;
  const DLTensor to = VectorOf(values, &shape);
  CHECK_OK(coconet_read(binding, name, &to));
  for (int i = 0; i < kN; ++i) CHECK(values[i] == want[i]);
}

static void CheckBinding(coconet_binding* binding, Drawn* bound, const int* is_bound) {
  static Drawn scratch;
  Model model;
  memset(&model, 0, sizeof model);
  for (int t = 0; t < kStates; ++t) {
    for (int i = 0; is_bound[t] && i < kN; ++i) model.values[t][i] = *At(&bound[t], i);
  }
  for (int call = 0; call < kCalls; ++call) {
    if (OneIn(2)) CallWrongly(binding, &scratch);
    if (OneIn(3)) {
      model.lr = (double)Draw(4) / 4;
      CHECK_OK(coconet_set_named(binding, "lr", model.lr));
    }
    const int steps = (int)Draw(3);
    CHECK_OK(steps == 1 ? coconet_run(binding) : coconet_run_steps(binding, steps));
    for (int i = 0; i < steps; ++i) Step(&model);
  }
  for (int t = 0; t < kStates; ++t) {
    if (!is_bound[t]) CheckRead(binding, kNames[t], model.values[t]);
    for (int i = 0; is_bound[t] && i < kN; ++i) CHECK(*At(&bound[t], i) == model.values[t][i]);
  }
}

/* Binds some tensors, in any order, now and then one of them twice or by a wrong name. */
static int Round(coconet_program* program) {
  static Drawn bound[kStates];
  const char* names[kStates + 1];
  const DLTensor* tensors[kStates + 1];
  int is_bound[kStates] = {0}, right = 1;
  size_t count = 0;
  for (int t = (int)Draw(kStates), left = (int)Draw(kStates + 1); left > 0; --left) {
    t = (t + 1) % kStates;
    DrawTensor(&bound[t]);
    is_bound[t] = 1;
    right = right && bound[t].right && (t == kG || bound[t].distinct);
    names[count] = kNames[t];
    tensors[count++] = &bound[t].tensor;
  }
  if (count > 0 && OneIn(8)) {
    const int which = (int)Draw(3);
    names[count] = which == 0 ? names[0] : which == 1 ? "nothing" : NULL;
    tensors[count++] = tensors[0];
    right = 0;
  } else if (count > 0 && OneIn(16)) {
    tensors[Draw(count)] = NULL;
    right = 0;
  }
  coconet_binding* binding = NULL;
  const int code = coconet_bind(program, names, tensors, count, &binding);
  CHECK((code == COCONET_OK) == right && (binding != NULL) == right);
  if (right) CheckBinding(binding, bound, is_bound);
  coconet_binding_free(binding);
  return right;
}

int main(void) {
  const char* const given = getenv("COCONET_SEED");
  const uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
  fprintf(stderr, "COCONET_SEED=%llu\n", (unsigned long long)seed);
  state = seed * 2 + 1;
  coconet_options options = QuickOptions();
  coconet_session* session = NULL;
  CHECK_OK(coconet_session_open(&options, &session));
  coconet_program* program = CompileMomentum(session, kN);
  int bound = 0;
  for (int round = 0; round < kRounds; ++round) bound += Round(program);
  CHECK(bound > kRounds / 10 && bound < kRounds * 9 / 10);
  coconet_program_free(program);
  CHECK_OK(coconet_session_close(session));
  return 0;
}
