/**
 * The system calls that code in a sandbox may not make, and the classic BPF program made from this table. A denied call fails
 * with EPERM, so that programs can continue. bubblewrap applies the program to every process that enters.
 */

/** Denied calls: name → number on x86_64 and arm64; null if the machine does not have the call. */
export const DENIED: Record<string, readonly [x64: number | null, arm64: number | null]> = {
  // Mounts and roots
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  open_tree_attr: [467, 467],
  // Namespaces
  unshare: [272, 97],
  setns: [308, 268],
  // Other processes
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  // The kernel itself
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  create_module: [174, null],
  query_module: [178, null],
  get_kernel_syms: [177, null],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  syslog: [103, 116],
  lookup_dcookie: [212, 18],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  fanotify_init: [300, 262],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  iopl: [172, null],
  ioperm: [173, null],
  modify_ldt: [154, null],
  _sysctl: [156, null],
  uselib: [134, null],
  ustat: [136, null],
  nfsservctl: [180, 42],
  vhangup: [153, 58],
  // Namespaces do not separate keys
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  // Clocks and node-wide settings
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  mbind: [237, 235],
  set_mempolicy: [238, 237],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  // Further calls that Podman's default filter does not allow
  io_pgetevents: [333, 292],
  process_madvise: [440, 440],
  sysfs: [139, null],
  vmsplice: [278, 75],
};

/** Socket families that no namespace confines: hypervisor services and kernel ciphers. */
export const DENIED_FAMILIES = { AF_ALG: 38, AF_VSOCK: 40 } as const;
export const AF_NETLINK = 16;
export const NETLINK_AUDIT = 9;
/**
 * Allowed personalities: PER_LINUX and PER_LINUX32, both also with UNAME26, and 0xffffffff, which queries the current personality. All
 * others weaken the memory layout.
 */
export const PERSONALITIES = [0, 8, 0x20000, 0x20008, 0xffffffff] as const;
/**
 * Calls that may not act on process 1, with the index of the pid argument. Process 1 has the uid of the commands, so a command could
 * limit the memory or CPU time of process 1, which would end the sandbox.
 */
export const SPARES_FIRST = { prlimit64: { numbers: [302, 261], index: 0 } } as const;
/** Calls that fail with ENOSYS; programs work without them. The node limits the contexts of io_setup (fs.aio-max-nr). */
export const ABSENT = { io_setup: [206, 0], clone3: [435, 435] } as const;

type Machine = {
  audit: number;
  column: 0 | 1;
  clone: number;
  ioctl: number;
  /** Numbers of socket and socketpair. */
  sockets: readonly [number, number];
  personality: number;
  x32: boolean;
};
const MACHINES: Partial<Record<NodeJS.Architecture, Machine>> = {
  x64: {
    ...{ audit: 0xc000003e, column: 0, clone: 56, ioctl: 16, x32: true },
    ...{ sockets: [41, 53], personality: 135 },
  },
  arm64: {
    ...{ audit: 0xc00000b7, column: 1, clone: 220, ioctl: 29, x32: false },
    ...{ sockets: [198, 199], personality: 92 },
  },
};

/** CLONE_NEW{NS, CGROUP, UTS, IPC, USER, PID, NET}; clone cannot make a time namespace. */
export const NEW_NAMESPACES = 0x7e020000;
export const TIOCSTI = 0x5412;
export const TIOCLINUX = 0x541c;
export const EPERM = 1;
export const ENOSYS = 38;

const LOAD = 0x20; // BPF_LD | BPF_W | BPF_ABS
const JEQ = 0x15;
const JGE = 0x35;
const JSET = 0x45;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;
const errno = (code: number): number => 0x00050000 | code;

/** Offsets into struct seccomp_data; arguments have 64 bits, low half first on both machines. */
const NUMBER = 0;
const ARCH = 4;
const argument = (index: number): number => 16 + 8 * index;

type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, k: number];

/**
 * Returns the program as bytes for `bwrap --seccomp`. clone3 hides its flags from filters, so clone3 fails with ENOSYS, and libc calls
 * clone instead. Throws RangeError for a machine without a table.
 */
export function seccompProgram(arch: NodeJS.Architecture = process.arch): Buffer {
  const machine = MACHINES[arch];
  if (!machine) throw new RangeError(`no system call table for ${arch}`);
  const refuse = (code: number): Instruction => [RETURN, 0, 0, errno(code)];
  const program: Instruction[] = [
    [LOAD, 0, 0, ARCH],
    // 32-bit calls have other numbers, so all are denied.
    [JEQ, 1, 0, machine.audit],
    refuse(ENOSYS),
    [LOAD, 0, 0, NUMBER],
  ];
  if (machine.x32) program.push([JGE, 0, 1, 0x40000000], refuse(ENOSYS));
  for (const numbers of Object.values(ABSENT))
    program.push([JEQ, 0, 1, numbers[machine.column]], refuse(ENOSYS));
  for (const { numbers, index } of Object.values(SPARES_FIRST))
    program.push(...firstProcessRules(numbers[machine.column], index, refuse(EPERM)));
  program.push(
    [JEQ, 0, 4, machine.clone],
    [LOAD, 0, 0, argument(0)],
    [JSET, 0, 1, NEW_NAMESPACES],
    refuse(EPERM),
    [RETURN, 0, 0, ALLOW],
  );
  program.push(
    [JEQ, 0, 5, machine.ioctl],
    [LOAD, 0, 0, argument(1)],
    [JEQ, 1, 0, TIOCSTI],
    [JEQ, 0, 1, TIOCLINUX],
    refuse(EPERM),
    [RETURN, 0, 0, ALLOW],
  );
  for (const number of machine.sockets) program.push(...socketRules(number, refuse(EPERM)));
  program.push(...personalityRules(machine.personality, refuse(EPERM)));
  for (const numbers of Object.values(DENIED)) {
    const number = numbers[machine.column];
    if (number !== null) program.push([JEQ, 0, 1, number], refuse(EPERM));
  }
  program.push([RETURN, 0, 0, ALLOW]);
  return assembled(program);
}

/** Refuses a call on process 1. Leaves the number of other calls in the accumulator. The kernel reads only the lower 32 bits of a pid. */
const firstProcessRules = (number: number, index: number, refuse: Instruction): Instruction[] => [
  [JEQ, 0, 4, number],
  [LOAD, 0, 0, argument(index)],
  [JEQ, 0, 1, 1],
  refuse,
  [RETURN, 0, 0, ALLOW],
];

/** Refuses sockets of denied families. Leaves the number of other calls in the accumulator. */
function socketRules(number: number, refuse: Instruction): Instruction[] {
  return [
    [JEQ, 0, 8, number],
    [LOAD, 0, 0, argument(0)],
    [JEQ, 5, 0, DENIED_FAMILIES.AF_ALG],
    [JEQ, 4, 0, DENIED_FAMILIES.AF_VSOCK],
    [JEQ, 0, 2, AF_NETLINK],
    [LOAD, 0, 0, argument(2)],
    [JEQ, 1, 0, NETLINK_AUDIT],
    [RETURN, 0, 0, ALLOW],
    refuse,
  ];
}

function personalityRules(number: number, refuse: Instruction): Instruction[] {
  const known = PERSONALITIES.map((value, at): Instruction => [JEQ, PERSONALITIES.length - at, 0, value]);
  return [
    [JEQ, 0, known.length + 3, number],
    [LOAD, 0, 0, argument(0)],
    ...known,
    refuse,
    [RETURN, 0, 0, ALLOW],
  ];
}

function assembled(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8);
  for (const [index, [code, jumpTrue, jumpFalse, k]] of program.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(jumpTrue, index * 8 + 2);
    bytes.writeUInt8(jumpFalse, index * 8 + 3);
    bytes.writeUInt32LE(k >>> 0, index * 8 + 4);
  }
  return bytes;
}
