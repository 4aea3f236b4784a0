'use strict'

const test = require('ava')
const { parseProfile } = require('../../../report/read/profile')
const { node } = require('../../helpers/run')

test('a longstack profile is read unchanged', async (t) => {
  const { stdout } = await node(['-e', `
    const trace = require('.').enable()
    trace.profile({ seconds: 0.2 }).then((profile) => console.log(JSON.stringify(profile)))
    setTimeout(() => {}, 500)`])
  const profile = JSON.parse(stdout)
  t.true(profile.chains.length > 0)
  t.deepEqual(parseProfile(JSON.stringify(profile)), profile)
})

test('anything but a profile is rejected', (t) => {
  for (const json of [undefined, 7, '', '{', 'null', '[]', '{}', '{"tree":{}}', '{"tree":[],"chains":[]}']) {
    t.is(parseProfile(json), undefined)
  }
})

test('values of wrong types count as absent, lists and depth are bounded', (t) => {
  const deep = `${'{"children":['.repeat(50_000)}${']}'.repeat(50_000)}`
  const json = `{"pid":"7","ranMs":-1,"lacks":[{}],"chains":[7,{"frames":{},"route":3,"count":1e300,"__proto__":{"x":1}}],
    "samples":null,"tree":${deep}}`
  const profile = parseProfile(json)
  t.like(profile, { pid: 0, ranMs: 0, lacks: [''], samples: [] })
  t.deepEqual(profile?.chains, [
    { frames: [], label: '', type: '', kind: '', count: 0, requests: 0, ranMs: 0, waitedMs: 0, waits: 0, cpuMs: 0 }
  ])
  let depth = 0
  for (let node = profile?.tree; node !== undefined; node = node.children[0]) depth++
  t.is(depth, 1001)
})
