/** Tools that changed during the tests are reported, even if the processes of the tests hide the change. */

import type { Container } from '@swefarm/sandbox';
import { NEVER, sh, spec } from '@swefarm/sandbox/test/subject.ts';
import { describe, expect, test } from 'vitest';
import { sealScript, whatChanged } from '../../src/evaluation/evidence.ts';
import { useRuntime } from './evaluator.ts';

const SCRIPT = { path: '/eval.sh', content: Buffer.from('echo one\n') };

describe.each(['docker', 'rootfs'] as const)('on %s', (name) => {
  const at = useRuntime(name);

  /** The reported changes after a shell script ran in place of the tests. */
  async function changesAfter(
    script: string,
    act: (container: Container) => Promise<void> = async () => undefined,
  ) {
    await using container = await at.runtime.start(spec(at.image, { role: 'evaluation' }), NEVER);
    await sh(container, 'git init -q /testbed');
    await container.putFiles([{ ...SCRIPT, mode: 0o755 }], NEVER);
    const seal = await sealScript(container, SCRIPT);
    await sh(container, script);
    await act(container);
    return await whatChanged(container, seal, NEVER);
  }

  test('honest tests report no changes', async () => {
    const script = `python3 -c 'import json, unittest, http.client'; git config --global --add safe.directory /testbed
      mkdir -p /opt/miniconda3/envs/testbed/bin /root/.cache/x/bin; echo >/opt/miniconda3/envs/testbed/bin/flask
      mkdir -p /testbed/bin /tmp/env/bin; cp /usr/bin/env /testbed/bin/python; cp /usr/bin/env /tmp/env/bin/python
      cp /usr/bin/env /root/.cache/x/bin/python; cat /eval.sh >/dev/null; rm -f /usr/bin/nl; touch /usr/bin/new; rm /usr/bin/new`;
    expect(await changesAfter(script)).toEqual({ changed_files: [] });
  });

  test.each([
    [
      'a script rewritten and restored',
      'cp -p /eval.sh /tmp/s; echo x >/eval.sh; cat /tmp/s >/eval.sh; touch -r /tmp/s /eval.sh',
      '/eval.sh',
    ],
    ['a script that was removed', 'rm /eval.sh', '/eval.sh'],
    ['a script moved and replaced', 'mv /eval.sh /tmp/s; cp -p /tmp/s /eval.sh', '/eval.sh'],
    [
      'a program overwritten, with its times restored',
      'cp -p /usr/bin/git /tmp/g; cat /tmp/g >/usr/bin/git; touch -r /tmp/g /usr/bin/git',
      '/usr/bin/git',
    ],
    ['a program that was removed', 'rm /usr/bin/git', '/usr/bin/git'],
    [
      'a link in place of a folder of programs',
      'cp -r /usr/bin /tmp/bin; mkdir -p /usr/local /tmp/local; ln -s /tmp/bin /usr/local/bin',
      '/usr/local/bin',
    ],
    ['a link in place of .git', 'mv .git .soft; ln -s .soft .git', '/testbed/.git'],
    ['a hook', 'mkdir -p .git/hooks; echo x >.git/hooks/post-checkout', '/testbed/.git/hooks/post-checkout'],
    ['a filter', 'git config filter.x.smudge "sh x"', '/testbed/.git/config:[filter "x"]'],
    [
      'hooks in another folder',
      'git config --global core.hooksPath /tmp',
      '/root/.gitconfig:\thooksPath = /tmp',
    ],
    [
      'a configuration that is a link',
      'ln -s /tmp/config /root/.gitconfig',
      '/root/.gitconfig:what is there cannot be read',
    ],
    [
      'files that all programs load',
      'echo /tmp/x.so >/etc/ld.so.preload; rm -f /etc/ld.so.preload; ln -s /tmp/x /etc/ld.so.preload',
      '/etc/ld.so.preload',
    ],
  ])('%s', async (_what, script, path) => {
    expect((await changesAfter(`export HOME=/root; ${script}`)).changed_files).toContain(path);
  });

  test('a loop that outlives the tests, kills observers, and cleans up after itself', async () => {
    const loop = `while :; do for p in /proc/[0-9]*; do read -r c <$p/comm; case $c in find|stat|ls) kill -9 \${p#/proc/};; esac; done; touch /usr/bin/a; rm -f /usr/bin/a; done`;
    const script = `cp /usr/bin/env /usr/bin/python3.99; mv /usr/bin/python3.99 /usr/bin/python3.98
      setsid sh -c '${loop}' >/dev/null 2>&1 &
      while ! [ -e /usr/bin/a ]; do :; done`;
    expect(await changesAfter(script)).toEqual({ changed_files: ['/usr/bin/python3.98'] });
  });

  test('a changed tool among very many files', async () => {
    const many = `import os
os.mkdir("/usr/many")
for n in range(20000): os.close(os.open(f"/usr/many/{n}", os.O_CREAT | os.O_WRONLY))`;
    const script = `python3 -c '${many}'; cp /usr/bin/env /usr/bin/tox`;
    expect(await changesAfter(script)).toEqual({ changed_files: ['/usr/bin/tox'] });
  });

  test('more changed tools than the limit are reported as unknown, with the reason', async () => {
    const many = `import os
for n in range(1050): os.makedirs(f"/usr/x{n}/bin/python")`;
    expect((await changesAfter(`python3 -c '${many}'`)).changes_unknown).toMatch(/more than 1000 files/);
  });

  test('changes of a lost container are reported as unknown, with the reason', async () => {
    const lost = await changesAfter('true', (container) => at.runtime.remove(container.id));
    expect(lost).toEqual({ changes_unknown: expect.stringMatching(/no such container|is gone/i) });
  });
});
