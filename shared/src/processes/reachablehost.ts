/** Finds the host name under which other hosts reach a server of this process, which may listen on all addresses. */
import { hostname, networkInterfaces } from 'node:os';

/** The host itself, or for 0.0.0.0 and :: this machine's first non-loopback address, else its name. */
export function reachableHost(host: string): string {
  if (host !== '0.0.0.0' && host !== '::') return host;
  const addresses = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
  const outside = addresses.filter(({ internal }) => !internal);
  return outside.find(({ family }) => family === 'IPv4')?.address ?? hostname();
}

/** `host:port` in the form that URLs need. */
export const hostPort = (host: string, port: number): string =>
  host.includes(':') && !host.startsWith('[') ? `[${host}]:${port}` : `${host}:${port}`;
