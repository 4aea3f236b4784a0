'use strict'

// Renders a profile in the format of pprof (profile.proto of github.com/google/pprof), as gzip.

const { gzipSync } = require('node:zlib')
const { placeOf, stacksOf } = require('./profile-stacks')

/** @typedef {import('./profile-stacks').Profile} Profile */

const NS = 1e6 // in a ms
const SAMPLE_NS = 4e6 // between two CPU samples
/** What a sample counts, with its unit; tools show the first one of `go tool pprof` -sample_index by name. */
const types = [['wall', 'nanoseconds'], ['ran', 'nanoseconds'], ['waited', 'nanoseconds'], ['count', 'count'],
  ['cpu', 'nanoseconds']]

/** @param {Profile} profile @returns {Buffer} */
function pprof (profile) {
  const format = require('pprof-format')
  const strings = new format.StringTable()
  const text = (/** @type {string} */ value) => strings.dedup(value)
  const { functions, locations, locationOf } = createLocations(format, text)
  const label = (/** @type {string} */ key, /** @type {string | undefined} */ value) => value === undefined
    ? []
    : [new format.Label({ key: text(key), str: text(value) })]
  const sample = []
  for (const { frames, chain, count, ranMs, waitedMs, cpuMs } of stacksOf(profile)) {
    const value = [ranMs + waitedMs, ranMs, waitedMs].map((ms) => Math.round(ms * NS))
    sample.push(new format.Sample({
      locationId: frames.map(locationOf),
      value: [...value, count, Math.round(cpuMs * NS)],
      label: [...label('route', chain.route), ...label('kind', chain.kind), ...label('hop', chain.label)]
    }))
  }
  const valueType = ([type, unit] = types[0]) => new format.ValueType({ type: text(type), unit: text(unit) })
  const encoded = new format.Profile({
    sampleType: types.map((type) => valueType(type)),
    sample,
    location: locations,
    function: functions,
    stringTable: strings,
    timeNanos: BigInt(Math.round(profile.startUnixMs)) * BigInt(NS),
    durationNanos: Math.round(profile.seconds * 1e9),
    periodType: valueType(['cpu', 'nanoseconds']),
    period: SAMPLE_NS,
    defaultSampleType: text('wall')
  }).encode()
  return gzipSync(encoded)
}

/**
 * Numbers the places of frames: a location and a function for each.
 * @param {typeof import('pprof-format')} format
 * @param {(value: string) => number} text
 */
function createLocations ({ Function, Line, Location }, text) {
  /** @type {Map<string, number>} */
  const functionIds = new Map()
  /** @type {Map<string, number>} */
  const locationIds = new Map()
  /** @type {InstanceType<typeof Function>[]} */
  const functions = []
  /** @type {InstanceType<typeof Location>[]} */
  const locations = []

  /** @param {string} name @param {string} file @returns {number} */
  function functionOf (name, file) {
    const key = `${name}\n${file}`
    let id = functionIds.get(key)
    if (id === undefined) {
      id = functions.push(new Function({ id: functions.length + 1, name: text(name), filename: text(file) }))
      functionIds.set(key, id)
    }
    return id
  }

  /** @param {string} frame @returns {number} */
  function locationOf (frame) {
    let id = locationIds.get(frame)
    if (id === undefined) {
      const { name, file, line } = placeOf(frame)
      const lines = [new Line({ functionId: functionOf(name, file), line })]
      id = locations.push(new Location({ id: locations.length + 1, line: lines }))
      locationIds.set(frame, id)
    }
    return id
  }

  return { functions, locations, locationOf }
}

module.exports = { pprof }
