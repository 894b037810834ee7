/**
 * Tests slurm/setup-apptainer.sh without Apptainer: in an overlay of this machine from which Apptainer is removed, with a package
 * made of the removed files. The test is skipped if this machine has no Apptainer.
 */
import { spawnSync } from 'node:child_process';
import { chmod, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { run } from '../../src/launchers/run.ts';
import { temporaryFolder } from '../temporaryfolder.ts';

const SCRIPT = resolve(import.meta.dirname, '../../../slurm/setup-apptainer.sh');
const present =
  process.getuid?.() === 0 &&
  spawnSync('apptainer', ['--version']).status === 0 &&
  spawnSync('dpkg-deb', ['--version']).status === 0;

/** Runs in its own mount namespace. $1: a folder, $2: the script. Each attempt writes its exit code and output to the folder. */
const ATTEMPTS = String.raw`
set -euo pipefail
dir=$1 files=()
for path in /usr/bin/apptainer /usr/bin/singularity /usr/lib/*/apptainer /usr/lib/*/singularity /usr/libexec/apptainer /etc/apptainer; do
  [ ! -e "$path" ] || files+=("$path")
done
mkdir -p "$dir"/{package/DEBIAN,disk,root,said}
printf 'Package: apptainer\nVersion: 1\nArchitecture: all\nMaintainer: test\nDescription: what this machine has\n' >"$dir/package/DEBIAN/control"
tar -C / -c "${'$'}{files[@]#/}" | tar -x -C "$dir/package"
dpkg-deb -Znone --build "$dir/package" "$dir/apptainer.deb" >/dev/null
mount --make-rprivate /
mount -t tmpfs none "$dir/disk"
mkdir "$dir/disk"/{upper,work}
mount -t overlay none -o "lowerdir=/,upperdir=$dir/disk/upper,workdir=$dir/disk/work" "$dir/root"
mount --rbind /dev "$dir/root/dev"
mount -t proc none "$dir/root/proc"
mount -t tmpfs none "$dir/root/run"
mount -t tmpfs none "$dir/root/mnt"
mkdir "$dir/root/mnt"/{old,said}
mount --bind "$dir/said" "$dir/root/mnt/said"
cp "$2" "$dir/root/mnt/setup.sh"
cp "$dir/apptainer.deb" "$dir/root/mnt/apptainer.deb"
for path in "${'$'}{files[@]}"; do rm -rf "$dir/root$path"; done
# No package source: nothing of this test is to come from elsewhere.
rm -rf "$dir/root/etc/apt/sources.list" "$dir/root/etc/apt/sources.list.d"
# In a chroot nobody may make user namespaces.
cd "$dir/root"
pivot_root . mnt/old
umount -l /mnt/old

attempt() { # attempt NAME USER [VARIABLE=VALUE...]
  local name=$1 user=$2 code=0
  shift 2
  setpriv --reuid="$user" --regid="$user" --clear-groups env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin SLURMD_NODENAME=n1 "$@" \
    bash /mnt/setup.sh >"/mnt/said/$name" 2>&1 || code=$?
  echo "$code" >"/mnt/said/$name.code"
}
attempt without-rights 65534
attempt without-sources 0
attempt without-package 0 SWEFARM_SLURM_APPTAINER=/mnt/none.deb
attempt one 0 SWEFARM_SLURM_APPTAINER=/mnt/apptainer.deb &
attempt other 0 SWEFARM_SLURM_APPTAINER=/mnt/apptainer.deb &
wait
attempt again 0
attempt user 65534
apptainer --version >/mnt/said/version
`;

let folder = '';
beforeAll(async () => {
  folder = temporaryFolder('setup');
  await chmod(folder, 0o755);
  if (present) await run('unshare', ['--mount', 'bash', '-c', ATTEMPTS, 'attempts', folder, SCRIPT]);
});

async function output(name: string): Promise<{ code: number; lines: string[] }> {
  const [code, text] = await Promise.all(
    [`${name}.code`, name].map((file) => readFile(join(folder, 'said', file), 'utf8')),
  );
  return { code: Number(code), lines: (text ?? '').split('\n').filter(Boolean) };
}

if (present) {
  test.each([
    ['without-rights', /there is no apptainer or singularity, and only root can install it: ask for it/],
    ['without-sources', /could not be installed from the package sources of this node: set SWEFARM_SLURM/],
    ['without-package', /none\.deb cannot be read: SWEFARM_SLURM_APPTAINER names a package on the shared/],
  ])('%s: one line says what to do', async (name, line) => {
    expect(await output(name)).toEqual({ code: 12, lines: [expect.stringMatching(line)] });
  });

  test('concurrent jobs of a node install it once, and later calls print nothing', async () => {
    const both = await Promise.all(['one', 'other'].map(output));
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(both.flatMap(({ lines }) => lines)).toEqual(['setup-apptainer on n1: apptainer was installed']);
    expect(await readFile(join(folder, 'said/version'), 'utf8')).toMatch(/version/);
    for (const name of ['again', 'user']) expect(await output(name)).toEqual({ code: 0, lines: [] });
  });
} else {
  test('slurm/setup-apptainer.sh', ({ skip }) =>
    skip('it needs root, dpkg-deb and an Apptainer to copy: bash testkit/setup/setup.sh apptainer'));
}
