/** The lock of a bundle with a Python of its own: every file that goes into it, by hash, and what the lock was made from. */
import { z } from 'zod';
import { LockFrame, SafePath } from './builder.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const packageName = z.string().regex(/^[\w.+-]+$/);

/** The request that `lockPython` resolves. */
export const PythonRequest = z.strictObject({
  /** Release of Debian, and packages without which the bundle does not start; their dependencies follow. */
  suite: z.string().regex(/^[a-z]+$/),
  debian: z.array(packageName).min(1),
  /** Dependencies of those packages that no program of the bundle uses. */
  debian_without: z.array(packageName).default([]),
  /** Requirements as pip reads them. */
  requirements: z.array(z.string()).min(1),
  /**
   * Python packages that the agent declares and does not import with the command of its card. `NAME==VERSION`: the resolver gets an empty
   * package of this version, so the dependencies of the package are left out too, and the package needs no wheel.
   */
  without: z.array(z.string().regex(/^[\w.-]+(==[\w.]+)?$/)).default([]),
});
export type PythonRequest = z.infer<typeof PythonRequest>;

/** Moment at which the mirror had packages, as the archive of all Debian packages writes it. */
export const Snapshot = z.string().regex(/^\d{8}T\d{6}Z$/);

export const DebianPackages = z.array(
  z.strictObject({ name: packageName, version: z.string(), file: SafePath, bytes: z.number(), sha256 }),
);

export const PythonLock = LockFrame.extend({
  kind: z.literal('python'),
  request: PythonRequest,
  python: z.string().regex(/^\d+\.\d+$/),
  snapshot: Snapshot,
  debian: DebianPackages,
  /** The one wheel of each package that is installed. */
  wheels: z.array(z.strictObject({ name: packageName, version: z.string(), sha256 })),
  /** Programs of the Debian packages that are copied to `programs`. */
  programs: z.array(SafePath).default([]),
  /** Files and folders of the Debian packages that are copied to the same place, without `usr`. */
  data: z.array(SafePath).default([]),
  /** Patterns of paths below the folder of Python packages that are removed; `**` stands for any folders. */
  drop: z.array(SafePath).default([]),
  /** Folders of a checkout that are copied to `src`, for an agent that is on no registry, with the digest of the folders. */
  source: z
    .strictObject({ folders: z.array(SafePath).min(1), revision: z.string().min(1), sha256 })
    .nullable()
    .default(null),
});
export type PythonLock = z.infer<typeof PythonLock>;
