// Package libnbd stands in the module graph for the C binding that only imports from VMware (VDDK) use. No code of
// this recipe calls it: the importer is built with the file that upstream has for machines without VDDK.
package libnbd
