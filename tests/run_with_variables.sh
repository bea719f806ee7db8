#!/usr/bin/env bash
# Runs a test with variables of the environment: run_with_variables.sh NAME=VALUE... TEST [ARGUMENT...]
# A pattern of --gtest_filter that matches no case of the test is an error.
set -uo pipefail

# The cases that a pattern matches, in all shards.
cases_of() {
  env -u GTEST_TOTAL_SHARDS -u GTEST_SHARD_INDEX -u GTEST_SHARD_STATUS_FILE -u XML_OUTPUT_FILE \
    "${before[@]}" --gtest_list_tests --gtest_filter="$1"
}

before=()  # variables and the test
test_found=""
for argument in "$@"; do
  if [[ -z "$test_found" ]]; then
    before+=("$argument")
    [[ "$argument" == *=* ]] || test_found=1
  elif [[ "$argument" == --gtest_filter=* ]]; then
    IFS=":-" read -ra patterns <<<"${argument#--gtest_filter=}"
    for pattern in "${patterns[@]}"; do
      if [[ -n "$pattern" && "$(cases_of "$pattern")" != *$'\n  '* ]]; then
        echo "--gtest_filter: no case of the test matches '$pattern'" >&2
        exit 1
      fi
    done
  fi
done
exec env "$@"
