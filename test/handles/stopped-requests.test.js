'use strict'

// Requests that nobody will respond to: nothing that they started is pending.

const path = require('node:path')
const test = require('ava')
const { node, register } = require('../helpers/run')

const fixture = path.join(__dirname, '..', 'fixtures', 'handles', 'stopped.js')
const pending = ['/timer', '/interval', '/await', '/then', '/watch', '/child', '/call', '/upload', '/begun']
const stopped = ['/nothing', '/read', '/done', '/rejected', '/tick', '/cleared', '/other']

/** @param {Record<string, string>} env */
async function stoppedIn (env) {
  const { stdout, stderr } = await node(['-r', register, fixture], { env: { ...process.env, ...env } })
  return { entries: new Map(JSON.parse(stdout)), stderr }
}

for (const [title, env] of Object.entries({ '': {}, ', by the JavaScript engine': { LONGSTACK_CAPTURE: 'js' } })) {
  test(`requests without pending work are listed with what they started last${title}`, async (t) => {
    const { entries, stderr } = await stoppedIn(env)
    t.is(stderr, '')
    t.deepEqual([...entries.keys()].sort(), [...pending, ...stopped].sort())
    for (const name of pending) t.is(entries.get(name) ?? undefined, undefined, name)
    for (const name of stopped) t.truthy(entries.get(name), name)
    t.like(entries.get('/read'), { label: 'fs.readFile' })
    t.regex(entries.get('/read').at, /^later \(.*stopped\.js:\d+:\d+\)$/)
  })
}

test('pending work is known after its records are overwritten', async (t) => {
  const { entries } = await stoppedIn({ WRAP: '1' })
  for (const name of pending) t.is(entries.get(name) ?? undefined, undefined, name)
})

test('with a filter, pending work is unknown', async (t) => {
  const { entries } = await stoppedIn({ LONGSTACK: 'TCP,HTTP,PROMISE' })
  t.true(entries.size > 0)
  for (const [name, last] of entries) t.is(last ?? undefined, undefined, name)
})
