/** Makes a throw-away authority and a certificate for `localhost` by openssl, for tests of TLS. */
import { join } from 'node:path';
import { run } from './run.ts';

export type Certificates = { ca: string; cert: string; key: string };

/** Writes the files to `dir`, which must exist, and returns their paths. */
export async function makeCertificates(dir: string): Promise<Certificates> {
  const openssl = (line: string, ...more: string[]) =>
    run('openssl', [...line.split(' '), ...more], { cwd: dir });
  await openssl(
    'req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.crt -subj',
    '/CN=an authority for tests',
  );
  await openssl('req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=localhost');
  await openssl('x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out server.crt');
  return { ca: join(dir, 'ca.crt'), cert: join(dir, 'server.crt'), key: join(dir, 'server.key') };
}
