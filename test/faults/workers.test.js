'use strict'

// Hundreds of workers, each with its own tracer: their resources are released, however they end.

const path = require('node:path')
const test = require('ava')
const { runOnce, temporary, ways } = require('../helpers/faults')
const { register, runsAll } = require('../helpers/run')

const WORKERS = runsAll ? 300 : 60
const MAX_HEAP_GROWTH = 5 << 20 // bytes: records and stacks are bounded, and kept
const MAX_GROWTH = 40 << 20 // bytes of the whole process, which is the allocator's slack of eight threads

const file = path.join(__dirname, '..', 'fixtures', 'faults', 'workers.js')

test('threads, descriptors and memory of workers are freed', async (t) => {
  const directory = temporary(t)
  const scene = { directory, file, args: ['--expose-gc'], env: { WORKERS: String(WORKERS) } }
  const bare = await runOnce(scene, [], {})
  for (const { capture } of runsAll ? ways : ways.slice(0, 1)) {
    const own = {
      LONGSTACK_CAPTURE: capture,
      LONGSTACK_SPANS: path.join(directory, 'spans.jsonl'),
      LONGSTACK_BLOCKED: '60000'
    }
    // Without the addon blocking callbacks are not detected: one line for all threads
    const traced = await runOnce(scene, ['-r', register], own)
    const { code, signal, stdout } = traced
    t.deepEqual([code, signal, stdout], [bare.code, bare.signal, bare.stdout], traced.stderr)
    const lines = traced.stderr.split('\n').filter(Boolean)
    t.is(lines.length, capture === 'js' ? 1 : 0, traced.stderr)
    const { before, after } = traced.stats
    t.log(JSON.stringify({ capture, before, after, bare: bare.stats }))
    t.true(after.threads <= before.threads, `${before.threads} ${after.threads}`)
    t.true(after.files <= before.files, `${before.files} ${after.files}`)
    t.true(after.heap - before.heap < MAX_HEAP_GROWTH, `${before.heap} ${after.heap}`)
    t.true(after.rss - before.rss < bare.stats.after.rss - bare.stats.before.rss + MAX_GROWTH, `${before.rss} ${after.rss}`)
  }
})
