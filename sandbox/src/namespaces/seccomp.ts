/**
 * The system calls that code in a sandbox may not make, and the classic BPF program made from these rules. A denied call fails
 * with EPERM, so that programs can continue. bubblewrap applies the program to every process that enters; the engines get the same
 * rules in their own format.
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

/** Calls that fail with ENOSYS; programs work without them. The node limits the contexts of io_setup (fs.aio-max-nr). */
export const ABSENT = { io_setup: [206, 0], clone3: [435, 435] } as const;

const NUMBERS: typeof DENIED = {
  ...DENIED,
  ...ABSENT,
  ...{ clone: [56, 220], ioctl: [16, 29], personality: [135, 92], prlimit64: [302, 261] },
  ...{ socket: [41, 198], socketpair: [53, 199] },
};

/** Compares the lower 32 bits of an argument; the kernel reads no more of it. */
export type Condition = { index: number; mask: number; value: number };
/** Refuses calls; with conditions, only calls that meet all of them. */
export type Rule = { names: readonly string[]; errno: number; conditions: readonly Condition[] };

const EPERM = 1;
const ENOSYS = 38;
export const refuse = (names: readonly string[], ...conditions: Condition[]): Rule => ({
  ...{ names, errno: EPERM, conditions },
});
export const equal = (index: number, value: number): Condition => ({ index, mask: 0xffffffff, value });

/** CLONE_NEW{NS, CGROUP, UTS, IPC, USER, PID, NET}; clone cannot make a time namespace. */
const NEW_NAMESPACES = 0x7e020000;
const TIOCSTI = 0x5412;
const TIOCLINUX = 0x541c;
const SOCKETS = ['socket', 'socketpair'];
/** Socket families that no namespace confines: kernel ciphers and hypervisor services. */
const AF_ALG = 38;
const AF_VSOCK = 40;
const AF_NETLINK = 16;
const NETLINK_AUDIT = 9;
/**
 * Allowed personalities: PER_LINUX and PER_LINUX32, both also with UNAME26, and 0xffffffff, which queries the current personality. All
 * others are refused, because flags of a personality can weaken the memory layout.
 */
export const PERSONALITIES = [0, 8, 0x20000, 0x20008, 0xffffffff] as const;

const bits = Array.from({ length: 32 }, (_, bit) => 2 ** bit);

/**
 * Matches all values except {@link PERSONALITIES}: a value is usual if all 32 bits are set, or if it has only bits of the usual values.
 * A rule of an engine has one condition on an argument, so each condition compares two bits.
 */
function strangePersonalities(): Condition[] {
  const usual = PERSONALITIES.slice(0, -1);
  const strange = bits.filter((bit) => usual.every((value) => Math.floor(value / bit) % 2 === 0));
  const pairs = [
    ...strange.map((bit, at) => [bit, strange[(at + 1) % strange.length] ?? bit]),
    ...bits.filter((bit) => !strange.includes(bit)).map((bit) => [strange[0] ?? 0, bit]),
  ];
  return pairs.map(([set = 0, unset = 0]) => ({ index: 0, mask: set + unset, value: set }));
}

/** The rules besides {@link DENIED}. */
export const RULES: readonly Rule[] = [
  // clone3 hides its flags from filters. Without clone3, libc calls clone.
  { ...refuse(Object.keys(ABSENT)), errno: ENOSYS },
  // Process 1 has the uid of the commands, so a command could limit its memory or CPU time, which would end the sandbox.
  refuse(['prlimit64'], equal(0, 1)),
  ...bits
    .filter((bit) => (NEW_NAMESPACES & bit) !== 0)
    .map((bit) => refuse(['clone'], { index: 0, mask: bit, value: bit })),
  ...[TIOCSTI, TIOCLINUX].map((request) => refuse(['ioctl'], equal(1, request))),
  ...[AF_ALG, AF_VSOCK].map((family) => refuse(SOCKETS, equal(0, family))),
  refuse(SOCKETS, equal(0, AF_NETLINK), equal(2, NETLINK_AUDIT)),
  ...strangePersonalities().map((condition) => refuse(['personality'], condition)),
];

type Machine = { audit: number; column: 0 | 1; x32: boolean };
const MACHINES: Partial<Record<NodeJS.Architecture, Machine>> = {
  x64: { audit: 0xc000003e, column: 0, x32: true },
  arm64: { audit: 0xc00000b7, column: 1, x32: false },
};

const LOAD = 0x20; // BPF_LD | BPF_W | BPF_ABS
const AND = 0x54;
const JEQ = 0x15;
const JGE = 0x35;
const RETURN = 0x06;
const ALLOW = 0x7fff0000;

/** Offsets into struct seccomp_data; arguments have 64 bits, low half first on both machines. */
const NUMBER = 0;
const ARCH = 4;
const argument = (index: number): number => 16 + 8 * index;

type Instruction = readonly [code: number, jumpTrue: number, jumpFalse: number, k: number];
const fail = (errno: number): Instruction => [RETURN, 0, 0, 0x00050000 | errno];

/** Returns the program as bytes for `bwrap --seccomp`. Throws RangeError for a machine without a table. */
export function seccompProgram(arch: NodeJS.Architecture = process.arch): Buffer {
  const machine = MACHINES[arch];
  if (!machine) throw new RangeError(`no system call table for ${arch}`);
  const program: Instruction[] = [
    [LOAD, 0, 0, ARCH],
    // 32-bit calls have other numbers, so all are denied.
    [JEQ, 1, 0, machine.audit],
    fail(ENOSYS),
    [LOAD, 0, 0, NUMBER],
  ];
  if (machine.x32) program.push([JGE, 0, 1, 0x40000000], fail(ENOSYS));
  const rules = [...RULES, refuse(Object.keys(DENIED))];
  for (const [name, numbers] of Object.entries(NUMBERS)) {
    const number = numbers[machine.column];
    if (number === null) continue;
    const own = rules.filter(({ names }) => names.includes(name)).flatMap(instructionsOf);
    program.push([JEQ, 0, own.length + 1, number], ...own, [RETURN, 0, 0, ALLOW]);
  }
  program.push([RETURN, 0, 0, ALLOW]);
  return assembled(program);
}

/** Returns instructions that refuse a call of the rule, and that pass any other call to the instruction after them. */
function instructionsOf({ errno, conditions }: Rule): Instruction[] {
  let rest = [fail(errno)];
  for (const { index, mask, value } of conditions.toReversed()) {
    rest = [[LOAD, 0, 0, argument(index)], [AND, 0, 0, mask], [JEQ, 0, rest.length, value], ...rest];
  }
  return rest;
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
