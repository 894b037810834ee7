/** Reads doctest's XML (nlohmann/json). A sub-case passes if every expression inside the sub-case reports success. */
import { reading } from './reader.ts';
import { descendants, type Element, readXml } from './xml.ts';

export const doctest = reading((log, found) => {
  const start = log.indexOf('<doctest');
  if (start < 0) return;
  const end = log.indexOf('</doctest>', start);
  if (end < 0) throw new SyntaxError('no end of the document');
  for (const testCase of descendants(readXml(log.slice(start, end + '</doctest>'.length)), 'TestCase')) {
    for (const subCase of descendants(testCase, 'SubCase')) {
      const passed = [...descendants(subCase, 'Expression')].every(
        (one) => one.attributes.get('success') === 'true',
      );
      found.set(`${nameOf(testCase)} > ${nameOf(subCase)}`, passed ? 'PASSED' : 'FAILED');
    }
  }
});

const nameOf = (element: Element): string => element.attributes.get('name') ?? 'None';
