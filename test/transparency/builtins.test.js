'use strict'

// Every function and property of Node's modules is unchanged: whether `new` works, name and length, keys and
// attributes (test/fixtures/transparency/builtins.js).

const path = require('node:path')
const test = require('ava')
const { node, register, root } = require('../helpers/run')

const program = path.join(root, 'test', 'fixtures', 'transparency', 'builtins.js')

/** What may differ, and why. */
const allowed = [
  /Symbol\(longstack\.tracer\.\d\)/, // all copies of longstack find the tracer there (lib/shared.js)
  /MessagePort\.prototype\.Symbol\(kHandle\)/, // tells of messages taken unseen (lib/passing/thread-messages.js)
  // Functions of C++ have both, as null, up to V8 13; they cannot be removed (native/openers.cc)
  /^node:fs\.(?:open|close)(?:Sync)?\.(?:arguments|caller): object 000$/,
  /^opened 0 0\._storeHeader/, // requests inherit it unless the option `propagate` is on
  /Error\.prototype\.Symbol\(nodejs\.util\.inspect\.custom\)/ // with errors=print (lib/format/printed-errors.js)
]

/** @param {string[]} flags @param {Record<string, string>} [env] @returns {Promise<string[]>} */
async function run (flags, env) {
  const { code, stdout, stderr } = await node(['--no-warnings', ...flags, program], { env })
  if (code !== 0) throw new Error(stderr)
  return stdout.split('\n').filter((line) => !allowed.some((pattern) => pattern.test(line)))
}

/** in the main thread, without longstack @type {Promise<string[]> | undefined} */
let bare

const all = {
  LONGSTACK_BLOCKED: '5000',
  LONGSTACK_LISTENERS: 'on',
  LONGSTACK_PEEK: 'on',
  LONGSTACK_PROPAGATE: 'on',
  LONGSTACK_SPANS: '/dev/null',
  LONGSTACK_WHY_EXIT: 'on'
}

/** @type {Record<string, Record<string, string>>} */
const modes = {
  'as it is': {},
  'all options': all,
  'all options, JavaScript': { ...all, LONGSTACK_CAPTURE: 'js' },
  'hops where errors are printed': { LONGSTACK_ERRORS: 'print' },
  'in a thread': { ...all, IN_WORKER: 'on' },
  disabled: { ...all, DISABLED: root }
}

for (const [name, env] of Object.entries(modes)) {
  test(name, async (t) => {
    bare ??= run([])
    const { IN_WORKER } = env
    const reference = IN_WORKER === undefined ? bare : run([], { IN_WORKER })
    const [expected, lines] = await Promise.all([reference, run(['-r', register], env)])
    t.true(expected.length > 15_000, String(expected.length))
    const [before, after] = [new Set(expected), new Set(lines)]
    t.deepEqual(expected.filter((line) => !after.has(line)), [])
    t.deepEqual(lines.filter((line) => !before.has(line)), [])
  })
}
