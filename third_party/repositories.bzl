"""What //:coconet needs of the machine, for this workspace and for others that depend on it."""

load("//third_party/absl:repository.bzl", "absl_source_repository")
load("//third_party/cuda:repository.bzl", "cuda_repository")
load("//third_party/mpi:repository.bzl", "mpi_repository")

def coconet_repositories():
    """Declares @absl_source, @cuda and @mpi. BUILD files also load of @bazel_skylib and @rules_cc, as Bazel's own do."""
    absl_source_repository(name = "absl_source")
    cuda_repository(name = "cuda")
    mpi_repository(name = "mpi")
