#!/usr/bin/env bash
# Runs a program under Open MPI on a small cluster inside this machine: network namespaces, joined to a switch by
# links of limited rate.
#
#   run.sh [--nodes=2] [--ranks-per-node=1] [--rate=2gbit] [--mtu=1500] [--mpirun=OPTION]... -- program [argument]...
#
#     --nodes           1 to 64; each has an address, a host name and a share of this machine's cores
#     --ranks-per-node  processes on each; rank 0, 1, ... fill node after node
#     --rate            of each node's link, per direction, as tc(8) writes it; "none" for a link without limit
#     --mtu             bytes per packet
#     --mpirun          one more option of mpirun; may be repeated: --mpirun=--enable-recovery
#
# Exits with mpirun's exit code; with 77 and one line that says why where such a cluster cannot be made (it takes Linux,
# iproute2, and root or user namespaces). No traffic leaves the machine. Everything lives in namespaces whose first
# process dies with this one, however this one ends: Linux removes processes, links, shared memory and Open MPI's files.
set -euo pipefail

readonly SELF="$(readlink -f "${BASH_SOURCE[0]}")"
readonly SUBNET=10.77.0  # within namespaces of our own: no conflict with other addresses

say() { echo "cluster: $*" >&2; }
usage() {
  say "$*; see --help"
  exit 2
}
cannot() {
  say "not here: $*"
  exit 77
}

nodes=2 ranks_per_node=1 rate=2gbit mtu=1500
mpirun_options=()

# Reads the options up to "--"; sets `parsed` to their number.
parse() {
  local all=$#
  while (($#)) && [[ "$1" != -- ]]; do
    case "$1" in
      --nodes=*) nodes="${1#*=}" ;;
      --ranks-per-node=*) ranks_per_node="${1#*=}" ;;
      --rate=*) rate="${1#*=}" ;;
      --mtu=*) mtu="${1#*=}" ;;
      --mpirun=*) mpirun_options+=("${1#*=}") ;;
      -h | --help) sed -n '2,/^set/s/^# \{0,1\}//p' "$SELF" && exit ;;
      *) usage "unknown option $1" ;;
    esac
    shift
  done
  (($# >= 2)) || usage "want -- and a program"
  parsed=$((all - $# + 1))
  [[ "$nodes" =~ ^[1-9][0-9]?$ ]] && ((nodes <= 64)) || usage "--nodes=$nodes: want 1 to 64"
  [[ "$ranks_per_node" =~ ^[1-9][0-9]{0,2}$ ]] || usage "--ranks-per-node=$ranks_per_node: want 1 to 999"
  [[ "$mtu" =~ ^[0-9]{3,5}$ ]] || usage "--mtu=$mtu: want bytes"
}

# ---- Outside: creates the namespaces for all that follows ----------------------------------------------

# Flags of unshare(1) for the namespaces that the cluster lives in; the processes in them die with the first.
isolation() {
  local flags=(--net --mount --uts --ipc --pid --fork --kill-child --mount-proc)
  ((EUID == 0)) || flags+=(--user --map-root-user)
  echo "${flags[@]}"
}

check_machine() {
  local tool
  for tool in ip tc unshare setpriv taskset mpirun; do
    [[ -n "$(PATH="$PATH:/usr/sbin:/sbin" type -P "$tool")" ]] || cannot "$tool is missing (setup.sh installs it)"
  done
  # shellcheck disable=SC2046
  unshare $(isolation) -- true 2>/dev/null || cannot "it takes root, or a system that allows user namespaces"
}

run_isolated() {
  check_machine
  # The child belongs to no terminal's job; it ends when this process ends in any way.
  # shellcheck disable=SC2046
  setpriv --pdeathsig KILL -- unshare $(isolation) -- "$SELF" --inside "$@" <&0 &
  local child=$! code=0
  trap 'kill -KILL $child 2>/dev/null; wait $child 2>/dev/null; exit 130' INT
  trap 'kill -KILL $child 2>/dev/null; wait $child 2>/dev/null; exit 143' TERM HUP
  wait $child || code=$?
  exit "$code"
}

# ---- Inside: the nodes, their links, mpirun ------------------------------------------------------------

# Prints the numbers of the cores that this process may run on, one per word.
allowed_cores() {
  local range
  for range in $(taskset -cp $$ | sed 's/.*: //; s/,/ /g'); do seq "${range%-*}" "${range#*-}"; done
}

# Prints one word per node: its cores, comma-separated, dealt out in turns. Nodes share cores if these are too few.
deal_cores() {
  local all node i mine
  mapfile -t all < <(allowed_cores)
  for ((node = 0; node < nodes; ++node)); do
    mine=()
    for ((i = node % ${#all[@]}; i < ${#all[@]}; i += nodes)); do mine+=("${all[i]}"); done
    (IFS=, && echo "${mine[*]}")
  done
}

# Limits what leaves interface $2 of namespace $1.
limit() {
  [[ "$rate" == none ]] || tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 256kb latency 50ms
}

make_switch() {
  ip netns add switch
  ip -n switch link add bridge type bridge
  ip -n switch link set bridge up
}

# Makes node $1, with a link to the switch: limited at both ends, so that many senders do not exceed a receiver's rate.
make_node() {
  local node="node$1" port="port$1"
  ip netns add "$node"
  ip -n "$node" link add eth0 mtu "$mtu" type veth peer name "$port" mtu "$mtu" netns switch
  ip -n switch link set "$port" master bridge up
  ip -n "$node" address add "$SUBNET.$(($1 + 1))/24" dev eth0
  ip -n "$node" link set lo up
  ip -n "$node" link set eth0 up
  limit "$node" eth0
  limit switch "$port"
}

# Runs a command as on node $1: with its network, its host name and on its cores.
on_node() {
  local node="$1" cores
  shift
  read -ra cores <<<"$CLUSTER_CORES"
  exec ip netns exec "node$node" unshare --uts -- taskset -c "${cores[node]}" \
    sh -c "hostname node$node && exec \"\$@\"" sh "$@"
}

# mpirun calls it instead of ssh: a host's address, then words for its shell.
remote_shell() {
  local host="$1"
  shift
  on_node $((${host##*.} - 1)) sh -c "$*"
}

run_inside() {
  # So that Open MPI's files and shared memory also go with the namespaces.
  mount -t tmpfs tmpfs /run && mkdir /run/netns /run/ompi
  mount -t tmpfs tmpfs /dev/shm
  make_switch
  local node hosts=()
  for ((node = 0; node < nodes; ++node)); do
    make_node "$node"
    hosts+=("$SUBNET.$((node + 1)):$ranks_per_node")
  done
  CLUSTER_CORES="$(deal_cores | tr '\n' ' ')"
  export CLUSTER_CORES OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  on_node 0 mpirun --host "$(IFS=, && echo "${hosts[*]}")" -n $((nodes * ranks_per_node)) --map-by slot --bind-to none \
    --mca plm_rsh_agent "$SELF --remote-shell" --mca plm_rsh_no_tree_spawn 1 --mca orte_tmpdir_base /run/ompi \
    --mca pml ob1 --mca btl self,vader,tcp --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \
    "${mpirun_options[@]}" "$@"
}

export PATH="$PATH:/usr/sbin:/sbin"
case "${1:-}" in
  --remote-shell)
    shift
    remote_shell "$@"
    ;;
  --inside)
    shift
    parse "$@"
    shift "$parsed"
    run_inside "$@"
    ;;
  *)
    parse "$@"
    run_isolated "$@"
    ;;
esac
