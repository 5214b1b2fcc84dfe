//! Status of ResourceClaim and DeviceTaintRule.

use super::{Condition, NodeSelector, Opaque, Toleration, view};

view! {
    /// ResourceClaimStatus.
    ClaimStatus {
        allocation: opt<Allocation> = "allocation",
        reserved_for: list<Consumer> = "reservedFor",
        devices: list<DeviceStatus> = "devices",
    }

    /// AllocationResult.
    Allocation {
        devices: one<AllocationDevices> = "devices",
        node_selector: opt<NodeSelector> = "nodeSelector",
    }

    /// DeviceAllocationResult.
    AllocationDevices {
        results: list<AllocationResult> = "results",
        config: list<AllocationConfig> = "config",
    }

    /// DeviceRequestAllocationResult.
    AllocationResult {
        request: str = "request",
        driver: str = "driver",
        pool: str = "pool",
        device: str = "device",
        admin_access: opt_bool = "adminAccess",
        tolerations: list<Toleration> = "tolerations",
        binding_conditions: strings = "bindingConditions",
        binding_failure_conditions: strings = "bindingFailureConditions",
        share_id: opt_str = "shareID",
        skip_node_operations: strings = "skipNodeOperations",
    }

    /// DeviceAllocationConfiguration.
    AllocationConfig {
        source: str = "source",
        requests: strings = "requests",
        opaque: opt<Opaque> = "opaque",
    }

    /// ResourceClaimConsumerReference.
    Consumer {
        resource: str = "resource",
        name: str = "name",
        uid: str = "uid",
    }

    /// AllocatedDeviceStatus.
    DeviceStatus {
        driver: str = "driver",
        pool: str = "pool",
        device: str = "device",
        share_id: opt_str = "shareID",
        conditions: list<Condition> = "conditions",
        data: raw = "data",
        network_data: opt<NetworkData> = "networkData",
    }

    /// NetworkDeviceData.
    NetworkData {
        interface_name: str = "interfaceName",
        ips: strings = "ips",
        hardware_address: str = "hardwareAddress",
    }

    /// DeviceTaintRuleStatus.
    RuleStatus {
        conditions: list<Condition> = "conditions",
    }
}
