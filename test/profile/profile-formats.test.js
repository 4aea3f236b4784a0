'use strict'

// Formats of a profile, read back by the tools they are for: go tool pprof, speedscope, and a browser for the
// page.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const test = require('ava')
const { able, folder, openFile } = require('../helpers/page')
const { collapsed, pprof, profileText } = require('../../report/render/profile')
const { createProfilePage } = require('../../report/render/page')

/** @typedef {import('../../lib/profile/profile').Profile} Profile */
/** @typedef {import('../../lib/profile/path-tree').PathNode} PathNode */

/**
 * @param {string} name
 * @param {PathNode['kind']} kind
 * @param {number} ms
 * @param {PathNode[]} [children]
 * @returns {PathNode}
 */
const pathNode = (name, kind, ms, children = []) => ({ name, kind, ms, count: 1, children })

const load = 'load (/app/pool.js:34:9)'
const handler = 'report (/app/app.js:24:3)'
const hash = 'hash (/app/hash.js:7:1)'

/** What is known of it by hand: 30 ms ran and 120 waited in load, 50 ran in the timer. @type {Profile} */
const profile = {
  pid: 4711,
  threadId: 0,
  nodeVersion: 'v24.0.0',
  startUnixMs: 1_763_685_600_000,
  seconds: 2,
  ranMs: 80,
  idleMs: 1920,
  cpuSeconds: 0.1,
  sampleCount: 20,
  chains: [
    { frames: [load, handler, '── GET /users/:id ──', 'main (/app/app.js:40:1)'], label: 'await', type: 'PROMISE', kind: 'PROMISE', route: 'GET /users/:id', requests: 0, count: 3, ranMs: 30, waitedMs: 120, waits: 3, cpuMs: 20 },
    { frames: ['<anonymous> (/app/beat.js:3:7)'], label: 'setInterval(100)', type: 'Timeout', kind: 'TIMER', requests: 0, count: 20, ranMs: 50, waitedMs: 0, waits: 0, cpuMs: 0 }
  ],
  otherChains: { count: 0, ranMs: 0, waitedMs: 0 },
  samples: [{ chain: 0, frames: [hash, load], ms: 20, count: 20 }],
  tree: pathNode('process', 'root', 200, [
    pathNode('GET /users/:id', 'route', 150, [pathNode(handler, 'frame', 150, [pathNode(load, 'frame', 150, [pathNode('await', 'frame', 150, [
      pathNode('await', 'waited', 120),
      pathNode('ran', 'ran', 30, [pathNode(load, 'frame', 20, [pathNode(hash, 'frame', 20, [pathNode('self', 'ran', 20)])])])
    ])])])]),
    pathNode('<anonymous> (/app/beat.js:3:7)', 'frame', 50, [pathNode('setInterval(100)', 'frame', 50, [pathNode('ran', 'ran', 50)])])
  ]),
  lacks: ['Nothing is known of <img src=x onerror=alert(1)>.']
}

/** Runs `go tool pprof` on the profile. @param {...string} args */
function goPprof (...args) {
  const file = path.join(folder, 'profile.pb.gz')
  fs.writeFileSync(file, pprof(profile))
  return execFileSync('go', ['tool', 'pprof', ...args, file], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], env: { ...process.env, PPROF_TMPDIR: folder } })
}

function isGoInstalled () {
  try {
    return execFileSync('go', ['version'], { encoding: 'utf8' }).startsWith('go version')
  } catch {
    return false
  }
}

test('go tool pprof reads the figures, names, places and labels', (t) => {
  if (!isGoInstalled()) {
    t.falsy(process.env.CI, 'Go is not installed')
    return t.log('skipped: Go is not installed')
  }
  const top = goPprof('-top', '-unit=ms')
  t.regex(top, /Type: wall\n/)
  t.regex(top, /Duration: 2s, Total samples = 200ms/)
  t.regex(top, /^\s+150ms 75.00% 75.00%\s+150ms 75.00%\s+load$/m)
  t.regex(top, /^\s+50ms 25.00%\s+100%\s+50ms 25.00%\s+<anonymous> beat\.js:3$/m)
  t.regex(goPprof('-top', '-sample_index=waited'), /Total samples = 120ms/)
  t.regex(goPprof('-top', '-sample_index=count'), /Total samples = 23\b/)
  t.regex(goPprof('-top', '-sample_index=cpu'), /^\s+20ms\s+100%\s+100%\s+20ms\s+100%\s+hash$/m)
  t.regex(goPprof('-top', '-sample_index=ran', '-tagfocus=kind=TIMER'), /50ms.*<anonymous> beat\.js:3/)
  t.regex(goPprof('-top', '-lines', '-sample_index=ran'), /report \/app\/app\.js:24/)
  const traces = goPprof('-traces', '-sample_index=cpu')
  t.regex(traces, /route:\s*GET \/users\/:id[^]*20ms\s+hash\n\s+load\n\s+await\n\s+load\n\s+report\n\s+GET \/users\/:id\n\s+main\n/)
})

test('collapsed stacks are one line each, outermost first, in µs', (t) => {
  const outer = `main (/app/app.js:40:1);GET /users/:id;${handler};${load}`
  t.is(collapsed(profile), `${outer} 30000\n<anonymous> (/app/beat.js:3:7) 50000\n`)
  t.is(collapsed(profile, 'waited'), `${outer} 120000\n`)
  t.is(collapsed(profile, 'cpu'), `${outer};await;${load};${hash} 20000\n`)
  const [chain] = profile.chains
  const hostile = { ...profile, chains: [{ ...chain, frames: ['a;b\n1 (x\u2028y:1:1)'] }], samples: [] }
  t.is(collapsed(hostile), 'a?b?1 (x?y:1:1) 30000\n')
})

test('the text shows first where the program ran, then where it waited', (t) => {
  const text = profileText(profile)
  t.regex(text, /^Process 4711, Node v24\.0\.0: 2\.00 s, of which its event loop ran 80\.0 ms \(4\.0 %\);/)
  t.regex(text, /Where it ran\n\s+100 %\s+80\.0 ms[^]*beat\.js[^]*50\.0 ms|62\.5 %/)
  t.regex(text, /Where it waited\n\s+100 %\s+120 ms[^]*waited: await/)
  t.regex(text, /By route\n[^]*GET \/users\/:id\s+1\s+30\.0 ms\s+120 ms/)
  t.true(text.split('\n').every((line) => line.length <= 80))
})

able('speedscope draws the collapsed stacks and the pprof', async (t) => {
  const release = path.join(path.dirname(require.resolve('speedscope/package.json')), 'dist', 'release', 'index.html')
  const stacks = path.join(folder, 'profile.txt')
  fs.writeFileSync(stacks, collapsed(profile))
  fs.writeFileSync(path.join(folder, 'profile.pb.gz'), pprof(profile))
  for (const file of [stacks, path.join(folder, 'profile.pb.gz')]) {
    const { page } = await openFile(pathToFileURL(release).href)
    await page.locator('input[type=file]').setInputFiles(file)
    await page.locator('canvas').first().waitFor()
    // Left Heavy, then the table of frames, which is text and not a canvas
    await page.getByText('Sandwich').click()
    const table = page.locator('table').last()
    await table.getByText('load', { exact: false }).first().waitFor()
    const names = await table.innerText()
    for (const name of ['load', 'report', 'GET /users/:id', '<anonymous>']) t.true(names.includes(name), `${file}: ${name} in ${names}`)
  }
})

able('the page draws a flame graph of run time, wait time, and both', async (t) => {
  const file = path.join(folder, 'profile.html')
  const html = createProfilePage(profile)
  t.false(/<img/.test(html))
  fs.writeFileSync(file, html)
  const { page, errors } = await openFile(pathToFileURL(file).href)
  const frame = (/** @type {string} */ name) => page.getByRole('treeitem', { name })
  t.is(await frame('process, 80.0 ms').count(), 1)
  t.is(await frame('hash (/app/hash.js:7:1), 20.0 ms').count(), 1)
  await page.getByText('waited', { exact: true }).first().click()
  t.is(await frame('process, 120 ms').count(), 1)
  t.is(await frame('waited: await, 120 ms').count(), 1)
  t.regex(await page.locator('#routes').innerText(), /GET \/users\/:id/)
  t.regex(await page.locator('header').innerText(), /<img src=x onerror=alert\(1\)>/)
  t.deepEqual(errors, [])
})
