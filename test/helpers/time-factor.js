'use strict'

// What is slow everywhere gets so many times the time: TIME_FACTOR=10, on an emulated CPU (arm64.js).

module.exports = { timeFactor: Number(process.env.TIME_FACTOR) || 1 }
