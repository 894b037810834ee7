/** Interprets redis_url: a server, the address file of `swefarm redis`, Sentinels, or a cluster. */
import { readFileSync } from 'node:fs';
import type { CommonConfig } from '../config/keys.ts';
import { errorMessage, UsageError } from '../failures/errors.ts';
import { decodeUrlPart } from '../security/secret.ts';
import { addressPath, readAddress } from './address.ts';
import { ownerOf } from './cluster.ts';
import type { ClientOptions, Endpoint, RedisEndpoint } from './endpoint.ts';
import { keysFor } from './keys.ts';

export type Target = RedisEndpoint & {
  kind: 'server' | 'file' | 'sentinel' | 'cluster';
  /**
   * Locates a server that may move, before each connect; the result overrides `options`. Absent: the server does not move, or the client
   * finds it. @throws UnusableError `redis_unreachable`
   */
  locate?: () => Promise<RedisEndpoint>;
};

/** Maximum wait for a reply in ms. A longer wait means that the host is lost: the client then locates the server again. */
const SILENCE_MS = 30_000;
const PORT = 6379;
const SENTINEL_PORT = 26379;
const SEVERAL = /^(rediss?)\+(sentinel|cluster):\/\/(?:(.*)@)?([^@/]+)(?:\/(.*))?$/;

/** Returns the server or servers of the configured redis_url. Throws UsageError for a missing or invalid URL, or unusable TLS files. */
export function targetOf(config: CommonConfig): Target {
  if (config.redis_url === null) {
    throw new UsageError(
      'no Redis configured: set redis_url (--redis-url, SWEFARM_REDIS_URL), such as redis://127.0.0.1:6379',
    );
  }
  const given = config.redis_url.reveal();
  refuseUnusedTls(config, given);
  const file = addressPath(given);
  if (file !== null) return followed(file);
  if (given.startsWith('/')) {
    return { kind: 'server', options: { path: given, ...loginOf(config) }, address: given };
  }
  const several = SEVERAL.exec(given);
  if (several) return severalTarget(config, several);
  return serverTarget(config, given);
}

function followed(file: string): Target {
  const locate = async (): Promise<RedisEndpoint> => {
    const { host, port, username, password } = await readAddress(file);
    const options = { host, port, username, password, socketTimeout: SILENCE_MS };
    return { options, address: `redis://${host}:${port}, by ${file}` };
  };
  return { kind: 'file', options: {}, address: `file:${file}`, locate };
}

function serverTarget(config: CommonConfig, given: string): Target {
  let url: URL;
  try {
    url = new URL(given);
  } catch (error) {
    throw new UsageError(`redis_url ${config.redis_url} is not a URL`, { cause: error });
  }
  const login = loginOf(config, url);
  if (url.protocol === 'unix:') {
    return { kind: 'server', options: { path: url.pathname, ...login }, address: url.pathname };
  }
  const db = databaseOf(config, url.pathname.slice(1));
  const host = url.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1';
  const port = Number(url.port || PORT);
  const tls = url.protocol === 'rediss:' ? { tls: tlsOptions(config, host) } : {};
  const address = `${url.protocol}//${url.hostname}:${port}${db ? `/${db}` : ''}`;
  return { kind: 'server', options: { host, port, db, ...login, ...tls }, address };
}

function severalTarget(config: CommonConfig, match: RegExpExecArray): Target {
  const [, protocol, kind, userInfo = '', hosts = '', path = ''] = match;
  const secure = protocol === 'rediss';
  const login = loginOf(config, parseUserInfo(config, userInfo));
  const endpoints = hosts
    .split(',')
    .map((text) => parseEndpoint(config, text, kind === 'cluster' ? PORT : SENTINEL_PORT));
  return kind === 'cluster'
    ? clusterTarget(config, { secure, login, endpoints, path })
    : sentinelTarget(config, { secure, login, endpoints, path });
}

type Several = { secure: boolean; login: Login; endpoints: Endpoint[]; path: string };

function sentinelTarget(config: CommonConfig, { secure, login, endpoints, path }: Several): Target {
  const [name = '', database = ''] = path.split('/').map(decodeUrlPart);
  if (name === '') {
    throw new UsageError(
      `redis_url ${config.redis_url} names no master: expected redis+sentinel://host:26379,…/NAME, as in the Sentinels' "sentinel monitor NAME"`,
    );
  }
  const db = databaseOf(config, database);
  const tls = secure
    ? { tls: tlsOptions(config), sentinelTLS: tlsOptions(config), enableTLSForSentinelMode: true }
    : {};
  const sentinelLogin = given({
    sentinelUsername: config.redis_sentinel_username,
    sentinelPassword: config.redis_sentinel_password?.reveal(),
  });
  const address = `${secure ? 'rediss' : 'redis'}+sentinel://${shown(endpoints)}/${name}${db ? `/${db}` : ''}`;
  const options = {
    sentinels: endpoints,
    name,
    db,
    socketTimeout: SILENCE_MS,
    ...login,
    ...tls,
    ...sentinelLogin,
  };
  return { kind: 'sentinel', options, address };
}

/** Returns the target for a cluster. All keys of a farm are in one slot, so the cluster acts as one server that may move. */
function clusterTarget(config: CommonConfig, { secure, login, endpoints, path }: Several): Target {
  if (path !== '') {
    throw new UsageError(`redis_url ${config.redis_url}: a cluster has no database numbers, and no path`);
  }
  const protocol = secure ? 'rediss' : 'redis';
  const key = keysFor(config.redis_prefix).farmId;
  const optionsFor = ({ host, port }: Endpoint): ClientOptions => ({
    ...{ host, port, socketTimeout: SILENCE_MS, ...login },
    ...(secure ? { tls: tlsOptions(config, host) } : {}),
  });
  const address = `${protocol}+cluster://${shown(endpoints)}`;
  const locate = async (): Promise<RedisEndpoint> => {
    const owner = await ownerOf(key, endpoints, optionsFor, address);
    return { options: optionsFor(owner), address: `${protocol}://${shown([owner])}, of ${address}` };
  };
  return { kind: 'cluster', options: {}, address, locate };
}

const shown = (endpoints: readonly Endpoint[]): string =>
  endpoints.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(',');

function parseEndpoint(config: CommonConfig, text: string, defaultPort: number): Endpoint {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^[\]:]+)(?::(\d+))?$/.exec(text.trim());
  const port = Number(match?.[2] ?? defaultPort);
  if (!match?.[1] || port < 1 || port > 65_535) {
    throw new UsageError(
      `redis_url ${config.redis_url}: "${text}" is not host:port; expected host:port,host:port`,
    );
  }
  return { host: match[1].replace(/^\[|\]$/g, ''), port };
}

function databaseOf(config: CommonConfig, text: string): number {
  const db = Number(text || 0);
  if (Number.isInteger(db) && db >= 0) return db;
  throw new UsageError(`redis_url ${config.redis_url}: the path is a database number`);
}

type Login = Pick<ClientOptions, 'username' | 'password'>;
type UserInfo = { username: string; password: string };

/** Returns the login from the URL; redis_username and redis_password have precedence. */
function loginOf(config: CommonConfig, url: UserInfo = { username: '', password: '' }): Login {
  return given({
    username: config.redis_username ?? decodeUrlPart(url.username),
    password: config.redis_password?.reveal() ?? decodeUrlPart(url.password),
  });
}

/** Returns the options that have a value. */
const given = <Options extends object>(options: Options) =>
  Object.fromEntries(Object.entries(options).filter(([, value]) => value)) as {
    [Name in keyof Options]?: NonNullable<Options[Name]>;
  };

/** Parses user and password of a URL with several hosts. */
function parseUserInfo(config: CommonConfig, text: string): UserInfo {
  try {
    return new URL(`redis://${text === '' ? '' : `${text}@`}host`);
  } catch (error) {
    throw new UsageError(`redis_url ${config.redis_url} is not a URL`, { cause: error });
  }
}

/** Throws UsageError if TLS files are set for an address without TLS, because the user expects encryption. */
function refuseUnusedTls(config: CommonConfig, url: string): void {
  if (url.startsWith('rediss')) return;
  const key = TLS_FILES.find((one) => config[one] !== null);
  if (key !== undefined)
    throw new UsageError(`${key} is set, but redis_url ${config.redis_url} has no TLS: use rediss://`);
}

/** Returns the TLS options. @param name server name of the certificate; by default the host of the connection */
function tlsOptions(config: CommonConfig, name?: string): NonNullable<ClientOptions['tls']> {
  if ((config.redis_tls_cert === null) !== (config.redis_tls_key === null)) {
    const [one, other] =
      config.redis_tls_cert === null
        ? ['redis_tls_key', 'redis_tls_cert']
        : ['redis_tls_cert', 'redis_tls_key'];
    throw new UsageError(`${one} is set and ${other} is not: a client certificate needs both files`);
  }
  return given({
    servername: name === undefined || /^[\d.]+$|:/.test(name) ? null : name,
    ca: fileOf(config, 'redis_tls_ca'),
    cert: fileOf(config, 'redis_tls_cert'),
    key: fileOf(config, 'redis_tls_key'),
  });
}

const TLS_FILES = ['redis_tls_ca', 'redis_tls_cert', 'redis_tls_key'] as const;

function fileOf(config: CommonConfig, key: (typeof TLS_FILES)[number]): Buffer | null {
  const path = config[key];
  try {
    return path === null ? null : readFileSync(path);
  } catch (error) {
    throw new UsageError(`${key}: ${errorMessage(error)}`, { cause: error });
  }
}
