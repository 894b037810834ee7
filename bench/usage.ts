/** Loaded into a measured process with `--import`: at its end its CPU time over all threads and its peak memory go to the file `?file=`. */
import { writeFileSync } from 'node:fs';

const file = new URL(import.meta.url).searchParams.get('file') ?? '/dev/null';
process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage();
  const usage = { cpu_seconds: (userCPUTime + systemCPUTime) / 1e6, peak_rss_mib: maxRSS / 1024 };
  writeFileSync(file, JSON.stringify(usage));
});
