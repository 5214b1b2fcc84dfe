//! Selectors as drivers, their documentation and the KEPs write them. None may be refused, for cost least of all.

use super::{ALL, V1_34, V1_36, V1_37, answer};
use crate::cel::{CelEnv, Outcome, Target};

const GPUS: &[&str] = &[
    r#"device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "mig""#,
    r#"device.attributes['gpu.nvidia.com'].productName == 'NVIDIA A100-SXM4-40GB' && device.attributes['gpu.nvidia.com'].profile == '1g.5gb'"#,
    r#"device.attributes['gpu.nvidia.com'].productName.lowerAscii().contains('a100')"#,
    r#"device.attributes['gpu.nvidia.com'].cudaComputeCapability.isGreaterThan(semver('8.0.0'))"#,
    r#"device.attributes['gpu.nvidia.com'].driverVersion.compareTo(semver('550.0.0')) >= 0"#,
    r#"device.attributes['gpu.nvidia.com'].index in [0, 1, 2, 3]"#,
    r#"device.attributes['gpu.nvidia.com'].uuid in ['GPU-18db0e85-99e9-c746-8531-ffeb86328b39', 'GPU-2']"#,
    r#"!has(device.attributes['gpu.nvidia.com'].parentUUID) || device.attributes['gpu.nvidia.com'].parentUUID != 'x'"#,
    r#""gpu.nvidia.com" in device.attributes && device.attributes["gpu.nvidia.com"].architecture == "Hopper""#,
    r#"'memory' in device.capacity['gpu.nvidia.com']"#,
    r#"device.attributes["gpu.nvidia.com"].architecture == "Blackwell" && device.attributes["gpu.nvidia.com"].cudaDriverVersion.isGreaterThan(semver("12.8.0")) && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("80Gi")) > 0"#,
    r#"device.attributes["compute-domain.nvidia.com"].type == "channel" && device.attributes["compute-domain.nvidia.com"].id == 0"#,
    r#"device.attributes["vfio.nvidia.com"].iommuGroup != 0"#,
    r#"device.attributes["gpu.nvidia.com"].index > 1 && device.attributes["gpu.nvidia.com"].pcieBusID.startsWith("0000:")"#,
    r#"device.driver == 'gpu.intel.com' && device.attributes['gpu.intel.com'].model == 'Flex 170'"#,
    r#"device.attributes['gpu.intel.com'].family.startsWith('Arc') && device.attributes['gpu.intel.com'].sriov"#,
    r#"device.capacity['gpu.intel.com'].memory.compareTo(quantity('16Gi')) > 0 && device.capacity['gpu.intel.com'].millicores.compareTo(quantity('500')) >= 0"#,
    r#"device.attributes['gaudi.intel.com'].model == 'Gaudi2'"#,
    r#"device.attributes["qat.intel.com"].services.contains("sym") && device.attributes["qat.intel.com"].services.contains("dc")"#,
    r#"device.driver == 'gpu.amd.com' && device.attributes['gpu.amd.com'].productName == 'AMD_Instinct_MI300X_OAM'"#,
    r#"device.capacity['gpu.amd.com'].memory.compareTo(quantity('64Gi')) >= 0 && device.capacity['gpu.amd.com'].computeUnits.compareTo(quantity('104')) >= 0"#,
    r#"device.attributes['gpu.amd.com'].partitionProfile.matches('^cpx.*$')"#,
    r#"["A100","H100","H200","B100","B200","L40","L40S","L4","T4","V100"].exists(m, device.attributes["gpu.nvidia.com"].productName.contains(m) && device.attributes["gpu.nvidia.com"].architecture.matches("^(Hopper|Ampere|Blackwell)$"))"#,
];

const OTHERS: &[&str] = &[
    r#"device.attributes["resource-driver.example.com"].color == "black" && device.attributes["resource-driver.example.com"].size == "large""#,
    r#"device.attributes["driver.example.com"].type == "gpu" && device.capacity["driver.example.com"].memory == quantity("64Gi")"#,
    r#"device.capacity["driver.example.com"].memory.isGreaterThan(quantity("32Gi").add(quantity("1Gi")))"#,
    r#"device.capacity["driver.example.com"].memory.sub(quantity("1Gi")).isGreaterThan(quantity("0"))"#,
    r#"device.capacity["driver.example.com"].memory.asApproximateFloat() > 1e9"#,
    r#"device.capacity["driver.example.com"].cores.isInteger() && device.capacity["driver.example.com"].cores.asInteger() % 2 == 0"#,
    r#"device.attributes["dra.net"].ifName.matches("^eth[1-8]$") && device.attributes["dra.net"].rdma == true"#,
    r#"device.attributes["dra.net"].mtu >= 9000 && device.attributes["dra.net"].state == "up" && device.attributes["dra.net"].virtual == false"#,
    r#"device.attributes["dra.net"].cloudNetwork.contains("network-1")"#,
    r#"device.attributes["dra.cpu"].numaNodeID == 0 && device.attributes["dra.cpu"].smtEnabled"#,
    r#"device.attributes["resource.kubernetes.io"].pcieRoot == "pci0000:00""#,
    r#"device.attributes["tpu.google.com"].generation.startsWith("v") && int(device.attributes["tpu.google.com"].generation.substring(1, 2)) >= 5"#,
    r#"has(device.attributes["a.b"].x) ? device.attributes["a.b"].x > 5 : false"#,
    r#"device.attributes["a.b"].?x.orValue("") == "y" && device.attributes["a.b"].?y.orValue(0) > 5"#,
    r#"device.attributes["a.b"].?x.or(device.attributes["a.b"].?y).orValue("") == "z""#,
    r#"cel.bind(dra, device.attributes["dra.example.com"], dra.someBool && dra.anotherBool)"#,
    r#"cel.bind(m, device.capacity["a.b"].memory, m.isGreaterThan(quantity("1Gi")) && m.isLessThan(quantity("2Gi")))"#,
    r#"["x", "y"].exists_one(m, device.attributes["a.b"].model.contains(m))"#,
    r#"["A100", "H100"].filter(m, device.attributes["a.b"].model == m).size() > 0"#,
    r#"["a","b","c"].exists(x, ["d","e","f"].exists(y, device.attributes["a.b"].s == x + y))"#,
    r#"device.attributes["a.b"].version.major() == 12 && device.attributes["a.b"].version.minor() >= 4"#,
    r#"semver("1.2.3").isLessThan(device.attributes["a.b"].version)"#,
    r#"isSemver(device.attributes["a.b"].str) && semver(device.attributes["a.b"].str).isGreaterThan(semver("1.0.0"))"#,
    r#"isQuantity(device.attributes["a.b"].memory) && quantity(device.attributes["a.b"].memory).asInteger() > 5"#,
    r#"device.driver.matches("^(gpu|tpu)\\..*$")"#,
    r#"(device.attributes["a.b"].i >= 0 && device.attributes["a.b"].i <= 7) || (device.attributes["a.b"].i >= 16 && device.attributes["a.b"].i <= 23)"#,
    r#"device.attributes["a.b"].s.split("-")[0] == "x" && device.attributes["a.b"].s.replace("a", "b") == "x""#,
    r#"device.attributes["a.b"].s.find("[0-9]+") == "100" && device.attributes["a.b"].s.findAll("[0-9]+").size() == 2"#,
    r#"device.attributes["a.b"].i == 1 ? device.attributes["a.b"].j == 2 : device.attributes["a.b"].j == 3"#,
    r#"device.attributes.exists(d, device.attributes[d].exists(k, device.attributes[d][k] == "x"))"#,
    r#"device.attributes.exists(d, d.contains("nvidia")) && device.capacity.exists(d, device.capacity[d].exists(k, device.capacity[d][k].isGreaterThan(quantity("1Gi"))))"#,
    r#"device.capacity["a.b"].all(k, device.capacity["a.b"][k].isGreaterThan(quantity("1")))"#,
    r#"cidr("10.0.0.0/8").containsIP(device.attributes["a.b"].address) && ip(device.attributes["a.b"].address).family() == 4"#,
    r#"sets.contains(["a", "b"], [device.attributes["a.b"].s])"#,
    r#"{"a": 1, "b": 2}[device.attributes["a.b"].s] == 1"#,
    r#"device.attributes["a.b"].s.matches("^(a|b|c)[0-9]{1,3}(\\.[0-9]+)?$") && device.attributes["a.b"].t.matches("^x.*y$")"#,
];

/// Consumable capacity, since 1.34.
const SHARED: &[&str] = &[
    r#"device.allowMultipleAllocations == true && device.capacity["a.b"].bandwidth.compareTo(quantity("10G")) >= 0"#,
];

/// Attributes that are lists, since 1.36.
const LISTS: &[&str] = &[
    r#"device.attributes["a.b"].numa.exists(n, n == 1) && device.attributes["a.b"].numa.all(n, n in [0, 1])"#,
    r#"device.attributes["a.b"].numa.includes(1) && 1 in device.attributes["a.b"].numa"#,
    r#"device.attributes["a.b"].names.exists(n, n.startsWith("x"))"#,
    r#"device.attributes["a.b"].versions.exists(v, v.isGreaterThan(semver("1.0.0")))"#,
    r#"sets.contains(device.attributes["a.b"].names, ["x"]) && device.attributes["a.b"].names[0] == "x""#,
    r#"device.attributes["a.b"].names.filter(n, n.contains("x")).size() > 0"#,
];

#[test]
fn no_vendor_is_refused() {
    let tables: [(&[&str], &[CelEnv]); 4] =
        [(GPUS, &ALL), (OTHERS, &ALL), (SHARED, &[V1_34, V1_36, V1_37]), (LISTS, &[V1_36, V1_37])];
    for (table, releases) in tables {
        for (expression, env) in table.iter().flat_map(|text| releases.iter().map(move |env| (text, env))) {
            let outcome = answer(expression, Target::Selector, *env);
            assert!(matches!(outcome, Outcome::Accepted { .. }), "{expression}\n{env:?}\n{outcome:?}");
        }
    }
}
