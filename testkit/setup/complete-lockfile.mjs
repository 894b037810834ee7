// npm omits optional packages of other platforms from the lockfile when the registry lacks them, and `npm ci` then refuses the
// lockfile everywhere. This script adds the packages by name and exact version; npm does not fetch them on other platforms.
// Run it after an `npm install` that changed the lockfile: node testkit/setup/complete-lockfile.mjs
import { readFileSync, writeFileSync } from 'node:fs';

const FILE = 'package-lock.json';
const OS = /(android|darwin|freebsd|linux|openharmony|win32|windows)/;
const CPU = /(arm64|x64|ia32|ppc64|riscv64|s390x|arm|64)(?![a-z0-9]*\d)/;
const CPU_NAMES = { 64: 'x64' };

const lock = JSON.parse(readFileSync(FILE, 'utf8'));
let added = 0;
for (const [path, entry] of Object.entries(lock.packages)) {
  if (!path.startsWith('node_modules/')) continue;
  for (const [name, version] of Object.entries(entry.optionalDependencies ?? {})) {
    const nested = `${path}/node_modules/${name}`;
    const hoisted = `node_modules/${name}`;
    if (lock.packages[nested] || lock.packages[hoisted] || !/^\d/.test(version)) continue;
    const os = OS.exec(name)?.[1];
    const cpu = CPU.exec(name)?.[1];
    const libc = /musl/.test(name) ? 'musl' : /gnu/.test(name) ? 'glibc' : null;
    lock.packages[hoisted] = {
      version,
      ...(cpu ? { cpu: [CPU_NAMES[cpu] ?? cpu] } : {}),
      ...(entry.dev ? { dev: true } : {}),
      ...(libc ? { libc: [libc] } : {}),
      optional: true,
      ...(os ? { os: [os === 'windows' ? 'win32' : os] } : {}),
    };
    added++;
  }
}
const [root, ...paths] = Object.keys(lock.packages);
lock.packages = Object.fromEntries([root, ...paths.sort()].map((path) => [path, lock.packages[path]]));
writeFileSync(FILE, `${JSON.stringify(lock, null, 2)}\n`);
console.log(`${FILE}: ${added} packages added`);
