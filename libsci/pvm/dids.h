/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The names of fields in trace records, in the order of their numbers: D(name), ... */
	D("AN"), D("AC"), D("AS"), D("BF"), D("CC"), D("CN"), D("CI"), D("CF"), D("CD"),
	D("CR"), D("CL"), D("CDA"), D("CDT"), D("CDX"), D("CDC"), D("CGI"), D("CRF"),
	D("CXC"), D("CXF"), D("CXN"), D("CXS"), D("ERI"), D("ERR"), D("FDS"), D("FP"),
	D("GN"), D("GI"), D("GT"), D("GS"), D("GBC"), D("HN"), D("HNL"), D("HNA"),
	D("HPT"), D("HA"), D("HSP"), D("HIS"), D("HCS"), D("HCU"), D("HDS"), D("HDU"),
	D("HS"), D("INB"), D("IMC"), D("IST"), D("MC"), D("MCX"), D("MB"), D("MNB"),
	D("SRC"), D("DST"), D("MDL"), D("MTS"), D("MTU"), D("MRF"), D("MRB"), D("MSB"),
	D("ME"), D("MHI"), D("AST"), D("AMC"), D("AML"), D("NE"), D("NMC"), D("NCT"),
	D("NTL"), D("NH"), D("NA"), D("OPT"), D("OPV"), D("OS"), D("PDA"), D("PDT"),
	D("PC"), D("PSD"), D("PSG"), D("PF"), D("PRF"), D("RST"), D("RMC"), D("RCX"),
	D("SN"), D("SE"), D("SF"), D("SW"), D("SC"), D("STL"), D("SIB"), D("TID"),
	D("PT"), D("MT"), D("TF"), D("TN"), D("PID"), D("TT"), D("TW"), D("TIS"),
	D("TNT"), D("TST"), D("TUS"), D("TUU"), D("TSS"), D("TSU"), D("TES"), D("TA"),
	D("TR"), D("TS"), D("TU"), D("TGS"), D("TGU"), D("TMW"), D("TM"), D("TRC"),
	D("TRT"), D("TRX"), D("TRO"), D("TRM"), D("TRB"), D("TRL"), D("VER"), D("VCT"),
	D("VID"), D("WID"),
