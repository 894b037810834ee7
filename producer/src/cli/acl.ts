/** `swefarm acl`: writes Redis users with the rights of workers and producers. Does not connect to Redis. */
import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { aclUser, replaceFile, UsageError } from '@swefarm/shared';
import { command, flag, required, text } from './declare.ts';
import { producerConfig } from './options.ts';
import { printStatus } from './terminal.ts';

export const acl = command({
  options: {
    '--output <folder>': required(
      text('folder for users.acl, worker.env, producer.env and admin.env, readable for this user alone'),
    ),
    '--config <file>': text('YAML file; its redis_prefix is used'),
    '--redis-prefix <text>': text('prefix of the farm that the users may reach'),
    '--force': flag('replace files that exist, with new passwords'),
  },
  example: 'swefarm acl --output acl/',
  async run({ config, redisPrefix, output, force }) {
    const folder = resolve(output);
    const { redis_prefix: prefix } = producerConfig({ farm: { config, redisPrefix } });
    const farm = prefix.replace(/[{}]/g, '');
    const roles = ['worker', 'producer'] as const;
    const passwords = { worker: fresh(), producer: fresh(), admin: fresh() };
    const files = {
      'users.acl': [
        // Without this line Redis accepts clients that send no password.
        'user default off',
        // Operators use this account: Redis refuses ACL LOAD, which applies new passwords, to the other users.
        `user ${farm}-admin on ${hashed(passwords.admin)} ~* &* +@all`,
        ...roles.map((role) => aclUser(`${farm}-${role}`, hashed(passwords[role]), role, prefix)),
      ],
      ...Object.fromEntries(
        roles.map((role) => [
          `${role}.env`,
          [
            `SWEFARM_REDIS_USERNAME=${farm}-${role}`,
            `SWEFARM_REDIS_PASSWORD=${passwords[role]}`,
            `SWEFARM_REDIS_PREFIX=${farm}`,
          ],
        ]),
      ),
      'admin.env': [`REDISCLI_AUTH=${passwords.admin}`],
    };
    const there = Object.keys(files).filter((name) => existsSync(join(folder, name)));
    if (there.length > 0 && !force) {
      throw new UsageError(
        `${folder} already has ${there.join(', ')}: --force replaces them with new passwords`,
      );
    }
    await mkdir(folder, { recursive: true, mode: 0o700 });
    for (const [name, lines] of Object.entries(files))
      await replaceFile(join(folder, name), `${lines.join('\n')}\n`, { mode: 0o600 });
    printStatus(nextSteps(folder, farm));
  },
});

const fresh = (): string => randomBytes(24).toString('hex');

/** Returns the hash that Redis stores. A random password of 192 bits needs no slow hash function. */
const hashed = (password: string): string => `#${createHash('sha256').update(password).digest('hex')}`;

const nextSteps = (folder: string, farm: string): string => `\
1. Redis 7 or newer: copy ${join(folder, 'users.acl')} to its host, readable by Redis alone, and set in
   redis.conf: aclfile /path/of/users.acl (and no requirepass, no user lines). Restart, or after a change:
   set -a; . ${join(folder, 'admin.env')}; redis-cli --user ${farm}-admin ACL LOAD
2. Workers: give worker.env to their nodes only (systemd EnvironmentFile=, or set -a; . worker.env), beside
   SWEFARM_REDIS_URL=rediss://host:port without user and password.
3. Producer and gateway: the same with producer.env. admin.env stays here.
SECURITY.md lists the rights of each.`;
