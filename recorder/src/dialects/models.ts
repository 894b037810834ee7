/** The answers of the paths `/models` and `/models/ID`, in a form that the clients of both companies read. */

/** Returns the JSON of a model. */
export const modelEntry = (id: string) => ({
  id,
  object: 'model',
  created: 0,
  owned_by: 'swefarm',
  type: 'model',
  display_name: id,
  created_at: '1970-01-01T00:00:00Z',
});

/** Returns the JSON of a list with one model. */
export const modelList = (id: string) => ({
  object: 'list',
  data: [modelEntry(id)],
  has_more: false,
  first_id: id,
  last_id: id,
});
