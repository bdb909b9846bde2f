"""The files, splits and photographs of RETINA: EyePACS and APTOS."""
