/** Finds the user of a container's processes in the image's account files. */
import { readFileSync } from 'node:fs';
import { RolloutFailure } from '@swefarm/shared';
import { resolveInside } from '../images/treepath.ts';
import type { Account } from '../namespaces/container.ts';
import type { RootImage } from './images.ts';

/** Returns the image's user, by number or by name in the image's /etc/passwd. Throws RolloutFailure sandbox_refused. */
export function readAccount(image: RootImage): Account {
  const [user = '', group] = image.config.user.split(':');
  const isNumber = /^\d+$/.test(user);
  const wanted = user === '' ? '0' : user;
  const row = rowsOf(image, 'passwd').find((fields) => fields[0] === wanted || fields[2] === wanted);
  if (!row && !isNumber && user !== '' && user !== 'root') {
    throw new RolloutFailure('sandbox_refused', `the image's user ${user} is not in its /etc/passwd`);
  }
  const uid = Number(row?.[2] ?? (isNumber ? user : 0));
  let gid = Number(row?.[3] ?? uid);
  if (group !== undefined) {
    gid = /^\d+$/.test(group)
      ? Number(group)
      : Number(rowsOf(image, 'group').find((fields) => fields[0] === group)?.[2]);
  }
  if (!Number.isInteger(gid))
    throw new RolloutFailure('sandbox_refused', `the image's group ${group} is not in its /etc/group`);
  return { uid, gid, home: row?.[5] || (uid === 0 ? '/root' : '/') };
}

/** Returns the lines of a file of /etc as fields, from the topmost layer that has the file. */
function rowsOf(image: RootImage, name: 'passwd' | 'group'): string[][] {
  for (const lower of image.lowers) {
    const file = resolveInside(lower, `/etc/${name}`);
    if (file)
      return readFileSync(file, 'utf8')
        .split('\n')
        .map((line) => line.split(':'));
  }
  return [];
}
