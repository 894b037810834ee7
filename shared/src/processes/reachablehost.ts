import { hostname, networkInterfaces } from 'node:os';

/** Returns the host by which other machines reach a server: `host`, or for 0.0.0.0 and :: an external IPv4 address or the host name. */
export function reachableHost(host: string): string {
  if (host !== '0.0.0.0' && host !== '::') return host;
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const outside = addresses.filter(({ internal }) => !internal);
  return outside.find(({ family }) => family === 'IPv4')?.address ?? hostname();
}

/** Returns `host:port` for URLs. */
export const hostPort = (host: string, port: number): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`;
