'use strict'

// A program that removes the array iterators, like some of Node's tests: longstack does not fail in the
// program's callbacks, in `vm` or at exit.

const path = require('node:path')
const test = require('ava')
const { node, register } = require('../helpers/run')

const file = path.join(__dirname, '..', 'fixtures', 'transparency', 'iterators.js')
const spans = '/dev/null'

/** @type {Record<string, string>[]} */
const modes = [
  {},
  { LONGSTACK_CAPTURE: 'js' },
  { LONGSTACK_ERRORS: 'off' },
  { LONGSTACK_SPANS: spans },
  { LONGSTACK_SPANS: spans, LONGSTACK_BLOCKED: '50' }
]

for (const env of modes) {
  const title = Object.entries(env).map(([name, value]) => `${name.slice('LONGSTACK_'.length)}=${value}`)
  test(title.join(' ') || 'full', async (t) => {
    const bare = await node([file])
    const traced = await node(['-r', register, file], { env })
    t.is(bare.stdout, 'vm: [3,2,1] is not iterable\nvm: Script execution timed out after 20ms\n' +
      'blocked\nfile\nuncaught: rejected\n')
    t.deepEqual([traced.stdout, traced.code], [bare.stdout, 7])
  })
}
