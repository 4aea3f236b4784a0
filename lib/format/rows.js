'use strict'

// Names and values as aligned rows, and figures for people. Data in, string out.

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB']

/** @param {Record<string, string | undefined>} values by name; undefined ones are left out */
function formatRows (values) {
  const rows = Object.entries(values).filter(([, value]) => value !== undefined)
  const width = Math.max(...rows.map(([name]) => name.length))
  return rows.map(([name, value]) => `${name.padEnd(width)}  ${value}`).join('\n')
}

/** Formats a size: `1 byte`, `64 MiB`, `1.5 KiB`. @param {number} count of bytes */
function formatBytes (count) {
  let size = count
  let unit = 0
  while (size >= 1024 && unit < UNITS.length - 1) {
    size /= 1024
    unit++
  }
  return `${Number.isInteger(size) ? size : size.toFixed(1)} ${count === 1 ? 'byte' : UNITS[unit]}`
}

/** Formats an integer with separators: `12,345`. @param {number} count */
function formatCount (count) {
  return String(count).replace(/\B(?=(?:\d{3})+$)/g, ',')
}

module.exports = { formatBytes, formatCount, formatRows }
