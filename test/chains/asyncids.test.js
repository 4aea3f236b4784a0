'use strict'

// In a process that has run for hours, ids exceed the 32 bits of a reference (lib/core/records.js). The
// starting id makes no difference, and reported ids are Node's own.

const path = require('node:path')
const { isDeepStrictEqual } = require('node:util')
const test = require('ava')
const { loadBinding } = require('../../lib/stacks/binding')
const { livePrograms, longstack } = require('../helpers/live')
const { node, register, root } = require('../helpers/run')
const { lines, stories } = require('../helpers/stories')

const { start } = livePrograms(test)
const fixtures = path.join(root, 'test', 'fixtures', 'ids')
const args = ['--expose-internals', '--no-warnings', '-r', path.join(fixtures, 'preset.js')]
const engines = loadBinding().failure === undefined ? ['native', 'js'] : ['js']
const themes = ['beats', 'files', 'loops', 'others', 'promises', 'sockets', 'timers', 'web']
const MAX_IDS = 3e6 // of a theme
const OWN_IDS = 2 ** 40 // longstack's own, of promises
// So far below it, a theme and the service begin, and pass the border
const BELOW = 400
const SERVICE_BELOW = 100
const allBorders = [2 ** 30, 2 ** 31, 2 ** 32]
const last = 2 ** 53 - 1e6

/**
 * @param {Record<string, import('../helpers/stories').Story>} played
 * @param {number} first id
 */
const toldIn = (played, first) => Object.fromEntries(Object.entries(played).map(([name, story]) => {
  const { chain, ofError } = story
  const end = chain.findIndex(({ origin }) => origin === 'worker')
  const odd = chain.slice(0, end === -1 ? undefined : end).filter(({ asyncId, triggerAsyncId }) =>
    !isOfRun(asyncId, first) || (triggerAsyncId > 1 && !isOfRun(triggerAsyncId, first)))
  return [name, [lines(chain), lines(ofError), odd]]
}))

/** @param {number} id @param {number} first */
function isOfRun (id, first) {
  return (id > first && id < first + MAX_IDS) || (id > OWN_IDS && id < OWN_IDS + 2 ** 30)
}

/**
 * Gets what is expected, in three tries at most: what ends a stream first is a matter of time, and of the one
 * resource whose id is a multiple of 2 ** 31 only its chain is known.
 * @template T
 * @param {number} first id
 * @param {T} expected
 * @param {(first: number) => Promise<T>} get
 */
async function patiently (first, expected, get) {
  let value = await get(first)
  for (let i = 1; i < 3 && !isDeepStrictEqual(value, expected); i++) value = await get(first - 13 * i)
  return value
}

for (const engine of engines) {
  // Records, which hold the references, are the same for both engines
  const borders = engine === 'native' ? allBorders : [2 ** 31]
  const env = { LONGSTACK_CAPTURE: engine }
  for (const theme of themes) {
    const first = stories(theme, env)
    for (const ids of [...borders.map((border) => border - BELOW), last]) {
      test(`${engine}, ${theme}, from ${ids}`, async (t) => {
        const expected = toldIn(await first, 0)
        const told = await patiently(ids, expected, async (from) =>
          toldIn(await stories(theme, { ...env, IDS: String(from) }, undefined, args), from))
        t.deepEqual(told, expected)
      })
    }
  }

  /** @param {string} file @param {string} ids */
  async function run (file, ids) {
    const { stdout, stderr } = await node(['-r', register, ...args, path.join(fixtures, file)],
      { env: { ...env, IDS: ids } })
    if (stderr !== '') throw new Error(stderr)
    return JSON.parse(stdout)
  }

  test(`${engine}: spans, why, handles and pending`, async (t) => {
    const expected = { ...await run('service.js', '0'), connections: true }
    t.like(expected, { wrong: [], open: 0, waits: true, peers: true })
    for (const ids of [...borders.map((border) => border - SERVICE_BELOW), last]) {
      const service = await patiently(ids, expected, async (from) => {
        const { connections, ...rest } = await run('service.js', String(from))
        return { ...rest, connections: connections.every((/** @type {number} */ id) => isOfRun(id, from)) }
      })
      t.deepEqual(service, expected, `from ${ids}`)
    }
  })

  for (const ids of ['0', String(2 ** 31 - 1000), String(2 ** 32 - 1000)]) {
    test(`${engine}: a handle opened at ${ids} runs while others have ids equal modulo 2 ** 31`, async (t) => {
      t.deepEqual(await run('long-lived.js', ids), [])
    })
  }
}

test('longstack why', async (t) => {
  const { pid, ready } = await start(`
    const net = require('node:net')
    function openServer () { return net.createServer(() => {}).listen(0, '127.0.0.1', openClient) }
    function openClient () {
      const client = net.connect(this.address().port, '127.0.0.1', () => {
        console.log('ready', JSON.stringify([client._handle.getAsyncId(), this._handle.getAsyncId()]))
      })
    }
    setTimeout(openServer, 10)`, { flags: args, env: { IDS: String(2 ** 31 - 5) } })
  const { stdout } = await longstack('why', '--json', pid)
  const [{ threads: [{ open }] }] = JSON.parse(stdout).processes
  const openers = ready.map((/** @type {number} */ id) => {
    const handle = open.find((/** @type {any} */ { asyncId }) => asyncId === id)
    return handle?.opened[0].frames.map((/** @type {any} */ { functionName }) => functionName).join()
  })
  t.true(ready[0] >= 2 ** 31)
  t.deepEqual(openers, ['openClient', 'openServer'])
})
