import { RolloutFailure } from '@swefarm/shared';
import { describe, expect, it } from 'vitest';
import { withTag } from '../images/names.ts';
import { createFailure, engineFailure, fileFailure, pullFailure, statusCode } from './errors.ts';

const engineError = (message: string, extra: object = {}) => Object.assign(new Error(message), extra);

describe('engine errors', () => {
  it.each([
    [engineError('connect ENOENT /var/run/docker.sock', { code: 'ENOENT' }), 'engine_unreachable'],
    [engineError('connect EACCES /x.sock', { code: 'EACCES' }), 'engine_unreachable'],
    [engineError('(HTTP code 500) write /x: no space left on device', { statusCode: 500 }), 'node_disk'],
    [engineError('fork: cannot allocate memory', { statusCode: 500 }), 'node_memory'],
    [
      engineError('exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown', { statusCode: 400 }),
      'no_bash',
    ],
    [
      engineError('(HTTP code 400) no such image: dir:/x:latest: invalid reference format', {
        statusCode: 400,
      }),
      'image_not_found',
    ],
    [engineError('something new', { statusCode: 500 }), 'sandbox_start'],
  ])('%s', (error, failureClass) => {
    expect(engineFailure(error, 'sandbox_start', 'starting')).toMatchObject({ failureClass });
  });

  it.each([
    ['invalid reference format', 'sandbox_lost'],
    ['no such file or directory: unknown', 'sandbox_lost'],
    ['ENOENT', 'sandbox_lost'],
    ['no space left on device', 'node_disk'],
    ['out of memory', 'node_memory'],
  ])('a file with the name "%s" that cannot be written is %s', (name, failureClass) => {
    const error = engineError(`(HTTP code 500) open /out/${name}: file name too long`, { statusCode: 500 });
    expect(fileFailure(error, 'writing')).toMatchObject({ failureClass, cause: error });
  });

  it('a container that Podman does not find any more is missing', () => {
    const gone = 'container ab12 does not exist in database: no such container';
    expect(statusCode(engineError(gone, { statusCode: 500 }))).toBe(404);
  });

  it.each([
    ['manifest for a/b:1 not found: manifest unknown', 'image_not_found'],
    ['pull access denied for a/b, repository does not exist', 'image_not_found'],
    ['Get "https://registry": dial tcp: lookup registry: no such host', 'image_pull'],
    ['write /layer: no space left on device', 'node_disk'],
  ])('%s', (message, failureClass) => {
    expect(pullFailure(new Error(message), 'a/b:1')).toMatchObject({ failureClass });
  });

  it.each([
    ['Range of CPUs is from 0.01 to 16.00, as there are only 16 CPUs available', 400, 'sandbox_refused'],
    ['Minimum memory limit allowed is 6MB', 400, 'sandbox_refused'],
    ['denied by an authorization plugin', 403, 'sandbox_refused'],
    [
      'runc create failed: error setting cgroup config for procHooks process: failed to write "1000000000": write /sys/fs/cgroup/pids/x/pids.max: invalid argument',
      500,
      'sandbox_refused',
    ],
    ['container create: CPU cfs quota cannot be less than 1ms (i.e. 1000)', 500, 'sandbox_refused'],
    ['no such image: a/b', 404, 'image_not_found'],
    ['conflict: the name is in use', 409, 'sandbox_start'],
    ['failed to create shim task: ttrpc: closed', 500, 'sandbox_start'],
    ['error setting cgroup config: cannot allocate memory', 500, 'node_memory'],
  ])('a create that fails with %s (%i) is %s', (message, statusCode, failureClass) => {
    expect(createFailure(engineError(message, { statusCode }), false, 'x')).toMatchObject({ failureClass });
  });

  it('returns failures and aborts unchanged', () => {
    const failure = new RolloutFailure('node_disk', 'full');
    expect(engineFailure(failure, 'sandbox_start', 'x')).toBe(failure);
    const abort = new DOMException('left', 'AbortError');
    expect(engineFailure(abort, 'sandbox_start', 'x')).toBe(abort);
  });
});

describe('withTag', () => {
  it.each([
    ['a/b', 'a/b:latest'],
    ['host:5000/a/b', 'host:5000/a/b:latest'],
    ['a/b:1', 'a/b:1'],
    ['a/b@sha256:00', 'a/b@sha256:00'],
  ])('%s', (image, tagged) => {
    expect(withTag(image)).toBe(tagged);
  });
});
