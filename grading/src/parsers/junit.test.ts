import { expect, test } from 'vitest';
import { junitOutcomes, readJUnit } from './junit.ts';

const suite = (inside: string): string =>
  `<?xml version="1.0" encoding="utf-8"?><testsuites><testsuite name="pytest">${inside}</testsuite></testsuites>`;

test('each entry has its class, name, file and status', () => {
  const xml = suite(
    '<properties><property name="skipped" value="1"/></properties>' +
      '<testcase classname="tests.test_a.TestK" name="test_x[&lt;a&gt; &#38; b]" file="tests/test_a.py" time="0.1"/>' +
      '<testcase classname="tests.test_a" name="test_y"><system-out><![CDATA[<failure/>]]></system-out><failure message="no">t</failure></testcase>' +
      '<testcase classname="tests.test_a" name="test_z"><error/></testcase>' +
      '<testcase name="alone"><skipped type="pytest.skip"/></testcase>',
  );
  expect(readJUnit(xml)).toEqual([
    { classname: 'tests.test_a.TestK', name: 'test_x[<a> & b]', file: 'tests/test_a.py', status: 'PASSED' },
    { classname: 'tests.test_a', name: 'test_y', file: '', status: 'FAILED' },
    { classname: 'tests.test_a', name: 'test_z', file: '', status: 'ERROR' },
    { classname: '', name: 'alone', file: '', status: 'SKIPPED' },
  ]);
  expect([...junitOutcomes(readJUnit(xml)).keys()].at(-1)).toBe('alone');
});

test('the worst entry of a test counts; a skipped one counts only alone', () => {
  const entry = (inside: string): string => `<testcase classname="A" name="b">${inside}</testcase>`;
  const status = (...entries: string[]): string | undefined =>
    junitOutcomes(readJUnit(suite(entries.map(entry).join('')))).get('A::b');
  expect(status('', '<error/>')).toBe('ERROR');
  expect(status('<failure/>', '')).toBe('FAILED');
  expect(status('<skipped/>', '')).toBe('PASSED');
  expect(status('', '<skipped/>')).toBe('PASSED');
  expect(status('<skipped/>')).toBe('SKIPPED');
});

test.each([
  ['not closed', '<testsuites><testsuite>'],
  ['no XML', 'Traceback (most recent call last):'],
  ['nothing', ''],
  ['text behind the end', '<testsuite/>x'],
  ['an unknown entity', suite('<testcase name="&secret;"/>')],
  ['one attribute twice', suite('<testcase name="a" name="b"/>')],
])('%s is an error', (_what, xml) => {
  expect(() => readJUnit(xml)).toThrow(SyntaxError);
});

test('a document type is refused, so entities and files of the host are not read', () => {
  const laughs =
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY lol "lol"><!ENTITY lol2 "&lol;&lol;&lol;&lol;">]><testsuite><testcase name="&lol2;"/></testsuite>';
  const outside =
    '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><testsuite><testcase name="&x;"/></testsuite>';
  for (const xml of [laughs, outside]) expect(() => readJUnit(xml)).toThrow('a document type is refused');
});

test('documents that would exhaust the memory are refused', () => {
  expect(() => readJUnit('<a>'.repeat(1_000_000))).toThrow('nested too deep');
  const attributes = Array.from({ length: 300 }, (_, at) => `a${at}=""`).join(' ');
  expect(() => readJUnit(`<testsuite ${attributes}/>`)).toThrow('too many attributes');
});

test('a file of 100 MB is read in seconds', () => {
  const noise = `<testcase classname="A" name="b"><system-out>${'x'.repeat(99_900)}</system-out></testcase>`;
  const xml = suite(noise.repeat(1000));
  // The CPU time of this thread, so that other processes do not fail the test.
  const start = process.threadCpuUsage();
  expect(readJUnit(xml)).toHaveLength(1000);
  const { user, system } = process.threadCpuUsage(start);
  expect((user + system) / 1000).toBeLessThan(20_000);
});
