import type { Architecture } from './seccomp.ts';

/**
 * Numbers of the system calls that a sandboxed program may not make, and of those whose arguments are looked at.
 * From the kernel's arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h.
 */
export type SystemCalls = Readonly<Record<string, readonly [x64: number | null, arm64: number | null]>>;

/** Answered with EPERM. */
export const FORBIDDEN: SystemCalls = {
  // other processes
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  // file systems and namespaces
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  unshare: [272, 97],
  setns: [308, 268],
  move_mount: [429, 429],
  open_tree: [428, 428],
  open_tree_attr: [467, 467],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  fanotify_init: [300, 262],
  fanotify_mark: [301, 263],
  lookup_dcookie: [212, 18],
  nfsservctl: [180, 42],
  // the kernel itself
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  keyctl: [250, 219],
  add_key: [248, 217],
  request_key: [249, 218],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  create_module: [174, null],
  get_kernel_syms: [177, null],
  query_module: [178, null],
  reboot: [169, 142],
  swapon: [167, 224],
  swapoff: [168, 225],
  acct: [163, 89],
  syslog: [103, 116],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  vhangup: [153, 58],
  iopl: [172, null],
  ioperm: [173, null],
  modify_ldt: [154, null],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
  _sysctl: [156, null],
  // memory that neither the limits of a process nor a look at its size can see
  memfd_secret: [447, 447],
  shmget: [29, 194],
  semget: [64, 190],
  msgget: [68, 186],
  mq_open: [240, 180],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  mbind: [237, 235],
  set_mempolicy: [238, 237],
};

/** Answered with ENOSYS, so that programs take the older way. */
export const ABSENT: SystemCalls = {
  /** Its flags lie in memory, where a filter cannot look. */
  clone3: [435, 435],
  memfd_create: [319, 279],
};

const INDEX: Record<Architecture, 0 | 1> = { x64: 0, arm64: 1 };

/** The numbers on one architecture, those that it does not have left out. */
export function numbersOf(calls: SystemCalls, architecture: Architecture): number[] {
  return Object.values(calls)
    .map((numbers) => numbers[INDEX[architecture]])
    .filter((number) => number !== null);
}

/** Calls whose arguments decide. */
export const CLONE: Record<Architecture, number> = { x64: 56, arm64: 220 };
export const IOCTL: Record<Architecture, number> = { x64: 16, arm64: 29 };
export const PERSONALITY: Record<Architecture, number> = { x64: 135, arm64: 92 };
export const SOCKET: Record<Architecture, number> = { x64: 41, arm64: 198 };
