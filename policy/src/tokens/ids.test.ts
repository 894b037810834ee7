import { expect, test } from 'vitest';
import { extractPromptIds, renderIds } from './ids.ts';

const cut = (json: string) => {
  const { text, ids } = extractPromptIds(Buffer.from(json));
  return { text, ids: ids && Array.from(ids) };
};

test('the list is cut out, and the text stays JSON', () => {
  expect(cut('{"a":"é","prompt_token_ids": [1, 22,\n333 ] ,"b":[4]}')).toEqual({
    text: '{"a":"é","prompt_token_ids": null ,"b":[4]}',
    ids: [1, 22, 333],
  });
  expect(cut('{"prompt_token_ids":[2147483647]}').ids).toEqual([2147483647]);
});
test('only a key is cut out, not a text that looks like one', () => {
  const json = JSON.stringify({ content: 'say "prompt_token_ids":[6,6,6]', prompt_token_ids: [1, 2] });
  const { text, ids } = cut(json);
  expect(ids).toEqual([1, 2]);
  expect(JSON.parse(text)).toEqual({ content: 'say "prompt_token_ids":[6,6,6]', prompt_token_ids: null });
});
test.each([
  ['none', '{"a":1}'],
  ['null', '{"prompt_token_ids":null}'],
  ['empty', '{"prompt_token_ids":[]}'],
  ['texts', '{"prompt_token_ids":["1","2"]}'],
  ['a fraction', '{"prompt_token_ids":[1.5]}'],
  ['a negative number', '{"prompt_token_ids":[-1]}'],
  ['a number too large', '{"prompt_token_ids":[2147483648]}'],
  ['a number far too large', '{"prompt_token_ids":[99999999999999999999]}'],
  ['no comma', '{"prompt_token_ids":[1 2]}'],
  ['a comma too many', '{"prompt_token_ids":[1,]}'],
  ['lists in it', '{"prompt_token_ids":[[1],[2]]}'],
  ['cut off', '{"prompt_token_ids":[1,2'],
])('%s: the text stays as it is', (_, json) => expect(cut(json)).toEqual({ text: json, ids: null }));

test('ids are written as JSON', () => {
  expect(renderIds(new Int32Array(0)).toString()).toBe('[]');
  expect(renderIds(Int32Array.of(0, 9, 10, 99, 100, 151643, 2147483647)).toString()).toBe(
    '[0,9,10,99,100,151643,2147483647]',
  );
  const many = Int32Array.from({ length: 60_000 }, (_, i) => (i * 7919) % 200_000);
  expect(renderIds(many).toString()).toBe(JSON.stringify(Array.from(many)));
});
