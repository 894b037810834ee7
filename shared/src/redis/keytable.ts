/** The page of every Redis key, as Markdown, from the comments of keys.ts: `node shared/src/redis/keytable.ts > docs/redis-keys.md`. */
import { readFileSync } from 'node:fs';

const INTRODUCTION = `# Redis keys

All keys begin with \`redis_prefix\`. The prefix is one hash tag, so that on a cluster all keys of a farm are in one slot. Words in
capitals stand for a part that differs: RUN, ROLLOUT, WORKER. A life time counts from the last write unless the table says otherwise.
The life time of a run is \`--ttl\`, 7 days by default. \`swefarm remove RUN\` removes the keys of a run at once.
The roles of \`swefarm acl\` and the keys that each may use are in \`shared/src/redis/acl.ts\`.

This page is generated from the comments of \`shared/src/redis/keys.ts\`: \`npm run docs:redis\`.
`;

type RedisKey = { name: string; type: string; life: string; content: string };

/** Matches a comment with its three parts, and the parts of the key's name. */
const DECLARATION =
  /\/\*\* (.+?) \| (.+?) \| (.+?)\.? \*\/\s+\w+: (?:\((?:\w+: string,? ?)+\) => )?key\(([^)]+)\)/g;
/** Words on the page for the parameter `id`, by the first part of the key. */
const ID_OF: Record<string, string> = { run: 'RUN', session: 'SESSION', worker: 'WORKER', live: 'WORKER' };

export function redisKeys(): RedisKey[] {
  const source = readFileSync(new URL('keys.ts', import.meta.url), 'utf8');
  return [...source.matchAll(DECLARATION)].map(([, type = '', life = '', content = '', parts = '']) => ({
    name: nameOf(parts.split(', ')),
    type,
    life,
    content,
  }));
}

function nameOf(parts: readonly string[]): string {
  const words = parts.map((part) => /^'(.*)'$/.exec(part)?.[1] ?? part.replace(/Id$/, '').toUpperCase());
  return words.map((word) => (word === 'ID' ? (ID_OF[words[0] ?? ''] ?? word) : word)).join(':');
}

export function redisPage(): string {
  const rows = redisKeys().map(
    ({ name, type, life, content }) => `| \`${name}\` | ${type} | ${life} | ${content} |`,
  );
  return `${[INTRODUCTION, '| key | type | life time | content |', '| --- | --- | --- | --- |', ...rows].join('\n')}\n`;
}

if (import.meta.main) process.stdout.write(redisPage());
