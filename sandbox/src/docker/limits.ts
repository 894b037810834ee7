import type { RuntimeCheck } from '../runtime.ts';

export type EngineInfo = {
  Driver?: string;
  DriverStatus?: [string, string][];
  CgroupVersion?: string;
  SecurityOptions?: string[];
  NCPU?: number;
} & Partial<Record<'MemoryLimit' | 'SwapLimit' | 'CpuCfsQuota' | 'PidsLimit' | 'Rootless', boolean>>;

export const hasFilter = ({ SecurityOptions }: EngineInfo): boolean =>
  SecurityOptions?.some((one) => /seccomp/.test(one)) ?? true;
export const NO_FILTER =
  'the engine filters no system calls: commands can end their own sandbox, which then counts as lost (build the kernel and the engine with seccomp)';

/** Without root there are no limits on control groups of version 1, although the engine may report some. */
export function engineLimits(info: EngineInfo): RuntimeCheck['limits'] {
  const rootless =
    info.Rootless === true || (info.SecurityOptions ?? []).some((one) => /name=rootless/.test(one));
  const powerless = rootless && info.CgroupVersion !== '2';
  const how = (isSupported: boolean | undefined, otherwise: 'none' | 'watched') =>
    isSupported && !powerless ? 'enforced' : otherwise;
  return {
    cpu: how(info.CpuCfsQuota, 'none'),
    memory: how(info.MemoryLimit, 'watched'),
    pids: how(info.PidsLimit, 'watched'),
    disk: hasDiskQuota(info) ? 'enforced' : 'none',
  };
}

/** overlay2 limits disk only on xfs with project quotas; elsewhere a disk limit makes every create fail. */
function hasDiskQuota(info: EngineInfo): boolean {
  if (['btrfs', 'zfs', 'devicemapper'].includes(info.Driver ?? '')) return true;
  const status = new Map(info.DriverStatus ?? []);
  return (
    info.Driver === 'overlay2' &&
    status.get('Backing Filesystem') === 'xfs' &&
    status.get('Supports project quota') === 'true'
  );
}
