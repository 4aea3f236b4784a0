'use strict'

// Through how many files and calls of longstack goes what users do often, as V8's precise coverage counts
// them on Node 24 and later. The figures may only fall: lower them when they do.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { node, register, root } = require('../helpers/run')

const MARGIN = 1.1 // more than that below a figure, and it has to be lowered
const NOISE = 1.1 // of requests: longstack works for several at once, and from time to time

const isCounted = Number(process.versions.node.split('.', 1)[0]) >= 24 && process.env.ENGINE === undefined
const counted = isCounted ? test : test.skip
if (!isCounted) console.log('Journeys are counted on Node 24 and later, with the native engine.')

/**
 * @type {Array<{ title: string, name: string, env?: Record<string, string>, files: number, calls: number,
 *   tries?: number }>}
 */
const journeys = [
  { title: 'a timer', name: 'timer', files: 25, calls: 55 },
  { title: 'the stack of an error after two awaits', name: 'error', files: 51, calls: 1150 },
  { title: 'why a connection is open, as text', name: 'why', files: 32, calls: 540 },
  { title: 'a request', name: 'request', files: 37, calls: 256, tries: 3 },
  { title: 'a request in a recording', name: 'request', env: { LONGSTACK_RECORD: 'out' }, files: 66, calls: 600, tries: 3 },
  { title: 'a request with spans', name: 'request', env: { LONGSTACK_SPANS: 'out' }, files: 66, calls: 600, tries: 3 }
]

for (const { title, name, env, files, calls, tries = 1 } of journeys) {
  counted(`${title}: ${files} files, ${calls} calls`, async (t) => {
    const cwd = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
    t.teardown(() => { fs.rmSync(cwd, { recursive: true, force: true }) })
    const noise = tries > 1 ? NOISE : 1
    const program = path.join(root, 'test', 'fixtures', 'journeys.js')
    const count = async () => JSON.parse((await node(['-r', register, program, name], { env, cwd })).stdout)
    let present = await count()
    for (let i = 1; i < tries && present.calls > calls * noise; i++) present = await count()
    const text = JSON.stringify(present)
    t.true(present.files <= files * noise && present.calls <= calls * noise, `it has ${text}`)
    t.true(present.calls * MARGIN * noise >= calls, `lower its figures: it has ${text}`)
  })
}
